import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { BackupService } from "@holdfast/proto/holdfast/admin/v1/backup_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { GrpcCalls } from "@holdfast/testing/api/grpc-calls.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { writeRowsUntilEnd } from "@holdfast/testing/platform/writes-until-end.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createBackupsUnderTest, longMs } from "./backups/backups-under-test.ts";

describe("a deleted service", () => {
  const fixture = createBackupsUnderTest();
  const { holdfast, pathOf, read, sql, digest, created, window } = fixture;
  let platform: Platform;
  let services: Services;
  let source: RunningService;
  beforeAll(async () => {
    await fixture.start();
    ({ platform, services, source } = fixture);
    await fixture.writeRows();
    await fixture.takeBackup();
    await fixture.untilRestorable();
  }, longMs);
  afterAll(fixture.remove, longMs);

  /**
   * Resolves when a base was taken since the service was deleted, and the log extends beyond it, long before the daily
   * one.
   */
  async function coveredAgain(since: string): Promise<void> {
    const isCovered = async () => {
      const { restorable, last_completed_at: base } = (await window()) ?? {};
      return (base ?? "") > since && (restorable?.to ?? "") > (base ?? "");
    };
    const describe = () => services.describe(source.service.id);
    await waitUntil("later rows can be restored", isCovered, { withinMs: longMs, everyMs: 200, describe });
  }

  it(
    "a deleted service returns with its rows, its hostname and its password",
    async () => {
      const before = await digest(source);
      const from = (await window())?.restorable?.from;
      expect(from).toBeDefined();
      await fixture.run("services", "delete", "orders", "--yes", "--wait");
      const list = await holdfast<ServiceJson[]>("services list --deleted");
      expect(list.map(({ id }) => id)).toContain(source.service.id);
      const deletedAt = new Date().toISOString();
      const undeleted = await created(`services undelete ${source.service.id}`);
      expect(undeleted.service).toMatchObject({
        id: source.service.id,
        name: "orders",
        hostname: source.service.hostname,
      });
      expect(undeleted.password).toBe(source.password);
      const reader = { ...undeleted, connection: { ...undeleted.connection, user: "made_in_sql" } };
      expect(await sql(reader, "SELECT current_user", "known to the source")).toEqual([
        { current_user: "made_in_sql" },
      ]);
      expect(await digest(undeleted)).toEqual(before);
      // Points in time that were restorable before still are, independently of the new archive.
      expect((await window())?.restorable?.from).toBe(from);
      await coveredAgain(deletedAt);
      expect(await window()).toMatchObject({ restorable: { from }, gaps: [expect.anything()] });
      const { restorable, gaps = [] } = (await window()) ?? {};
      const middle = gaps.at(0) ?? { from: "", to: "" };
      const restore_point = new Date((Date.parse(middle.from) + Date.parse(middle.to)) / 2).toISOString();
      const body = { restore_point, target_service_name: "orders-nowhen" };
      const response = await platform.rest.post(pathOf(source.service.id, "/restore"), body);
      expect(expectStatus(response, 422).json).toMatchObject({
        code: "restore_point_unavailable",
        earliest: restorable?.from,
        gaps,
      });
    },
    2 * longMs,
  );

  it(
    "a service that returns on its disk also has a base immediately, and its log has no further gap",
    async () => {
      const { id } = source.service;
      const before = await window();
      const { acknowledged, ended } = await writeRowsUntilEnd(platform, source);
      await waitUntil("rows are acknowledged", () => acknowledged.length > 100, { everyMs: 20 });
      await services.verb(id, "stop");
      await ended;
      expectStatus(await platform.rest.post(pathOf(id)), 409);
      expectStatus(await platform.rest.post(`/managed-services/${id}/fork`, { name: "orders-fork" }), 409);
      await services.delete(id);
      const deletedAt = new Date().toISOString();
      const undeleted = await created(`services undelete ${id}`);
      const found = new Set((await sql(undeleted, "SELECT i FROM late")).map(({ i }) => i));
      expect(acknowledged.filter((i) => !found.has(i))).toEqual([]);
      await coveredAgain(deletedAt);
      expect(await window()).toMatchObject({ restorable: { from: before?.restorable?.from }, gaps: before?.gaps });
    },
    2 * longMs,
  );

  it("operators see its archive, the ranges of its log and what retention would delete", async () => {
    const { id: serviceId } = source.service;
    const all = <T>(run: (rpcs: GrpcCalls<typeof BackupService>) => Promise<T>) =>
      asOperator(platform, BackupService, run);
    const { archives } = await all((rpcs) => rpcs.listArchives({}));
    const archive = archives.find((each) => each.serviceId === serviceId);
    expect(archive).toMatchObject({ serviceName: "orders", engine: "postgresql" });
    const { ranges } = await all((rpcs) => rpcs.listLogRanges({ serviceId }));
    expect(ranges.at(-1)).toMatchObject({ archiveId: archive?.archiveId, term: archive?.term });
    expect(new Set(ranges.map(({ archiveId }) => archiveId)).size).toBeGreaterThan(1);
    const inAYear = { at: timestampFromMs(Date.now() + 365 * 86_400_000) };
    const { expiries } = await all((rpcs) => rpcs.listExpiry(inAYear));
    const ended = expiries.filter((each) => each.serviceId === serviceId && each.kind === "backup");
    expect(ended.length).toBeGreaterThan(0);
    for (const { id } of ended) expect(await read(id)).toMatchObject({ backup_type: "automated" });
    const { expiries: now } = await all((rpcs) => rpcs.listExpiry({}));
    expect(now.filter((each) => each.serviceId === serviceId)).toEqual([]);
  });
});
