import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { leaveInvalid } from "@holdfast/testing/engines/invalid-database.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { type DrillJson, drilled, noDrillMachines } from "@holdfast/testing/platform/drills.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createBackupsUnderTest, longMs } from "./backups/backups-under-test.ts";

describe("a restore point of a service", () => {
  const fixture = createBackupsUnderTest();
  const { pathOf, sql, created } = fixture;
  let platform: Platform;
  let services: Services;
  let source: RunningService;
  beforeAll(async () => {
    await fixture.start({ HOLDFAST_IDLE_LOG_AFTER_S: "3" });
    ({ platform, services, source } = fixture);
  }, longMs);
  afterAll(fixture.remove, longMs);

  it(
    "rows are restored as they were at a second between backups",
    async () => {
      const { id } = source.service;
      const restorable = async () => (await services.get(id)).backups?.restorable ?? null;
      const wait = { withinMs: longMs, everyMs: 200 };
      await waitUntil("the log continues from a base", async () => (await restorable()) !== null, wait);
      await sql(source, "CREATE TABLE later AS SELECT generate_series(1, 100) AS i");
      await sql(source, "CREATE DATABASE doomed");
      const doomed = { ...source, connection: { ...source.connection, database: "doomed" } };
      await sql(doomed, "CREATE TABLE inside AS SELECT generate_series(1, 100) AS i");
      const client = await openPostgresql(platform, source.connection, { password: source.password });
      await leaveInvalid(client, "halfway");
      const point = new Date(await reserveMillisecond()).toISOString();
      // Usually no other commit comes in between.
      await client.query("DROP DATABASE doomed");
      await client.end();
      await sql(source, "DELETE FROM later");
      await waitUntil("it is durable", async () => ((await restorable())?.to ?? "") > point, wait);
      const earlier = await created(`services restore orders --name orders-then --to ${point}`);
      expect(await sql(earlier, "SELECT count(*)::int AS count FROM later")).toEqual([{ count: 100 }]);
      expect(await sql(source, "SELECT count(*)::int AS count FROM later")).toEqual([{ count: 0 }]);
      const inside = { ...earlier, connection: { ...earlier.connection, database: "doomed" } };
      expect(await sql(inside, "SELECT count(*)::int AS count FROM inside")).toEqual([{ count: 100 }]);
      const creation = (await services.operations(earlier.service.id)).find(({ type }) => type === "create");
      expect(creation?.warnings).toEqual([expect.stringContaining("Database halfway is invalid")]);
    },
    longMs,
  );

  it(
    "a drill restores the newest backup and a point in time, checks both, and leaves no machine",
    async () => {
      const { id } = source.service;
      await fixture.takeBackup();
      const requested = expectStatus(await platform.rest.post<DrillJson>(pathOf(id, "/drill")), 202).json;
      expect(requested).toMatchObject({ status: "pending", trigger: "request", finished_at: null });
      expect((await platform.rest.post(pathOf(id, "/drill"))).status).toBe(409);
      const drill = await drilled(platform, id, requested.id);
      expect(drill).toMatchObject({ status: "completed", error: null });
      expect(drill.target).not.toBeNull();
      // The restored time may be before the database became invalid.
      const certain = drill.checks.filter(({ name, of }) => name !== "databases" || of === "backup");
      expect(certain.map(({ name, of, passed }) => [name, of, passed])).toEqual([
        ["restored", "backup", true],
        ["structure", "backup", true],
        ["databases", "backup", true],
        ["restored", "target", true],
        ["structure", "target", true],
        ["heartbeat", "target", true],
      ]);
      const operation = await platform.rest.get<object>(`/operations/${drill.operation_id}`);
      expect(operation.json).toMatchObject({ type: "drill", status: "completed", service_id: id });
      expect(operation.json).toMatchObject({ warnings: [expect.stringContaining("Database halfway is invalid")] });
      expect(await services.get(id)).toMatchObject({
        status: "Running",
        backups: { last_drill: { id: drill.id, passed: true, error: null } },
      });
      await noDrillMachines(platform);
    },
    longMs,
  );
});
