import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandOnce, openValkey } from "@holdfast/testing/api/clients.ts";
import { drilled, noDrillMachines } from "@holdfast/testing/platform/drills.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { writeUntilEnd } from "@holdfast/testing/platform/writes-until-end.ts";

interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly kind: string;
  readonly restores_to: string;
}

const longMs = 120_000;

describe("backups of a Valkey", () => {
  let platform: Platform;
  let services: Services;
  let cache: RunningService;
  const snapshots: BackupJson[] = [];

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    cache = await services.createRunning("cache", { database_type: "valkey", allowed_cidrs: ["127.0.0.0/8"] });
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const backupsOf = (rest = "") => `/managed-services/${cache.service.id}/backups${rest}`;
  const run = (of: RunningService, ...[command = "", ...args]: string[]) =>
    commandOnce(platform, of.connection, { password: of.password }, command, ...args);

  async function takeBackup(): Promise<BackupJson> {
    const { id } = expectStatus(await platform.rest.post<BackupJson>(backupsOf()), 202).json;
    const check = async () => {
      const backup = expectStatus(await platform.rest.get<BackupJson>(backupsOf(`/${id}`)), 200).json;
      return ["completed", "failed"].includes(backup.status) ? backup : undefined;
    };
    const describe = () => services.describe(cache.service.id);
    return waitUntil(`the backup ${id} has ended`, check, { withinMs: longMs, everyMs: 100, describe });
  }

  async function created(response: { status: number; text: string; json: unknown }): Promise<RunningService> {
    const { id } = expectStatus(response, 202).json as ServiceJson;
    await services.settled(id, "Running", longMs);
    return services.open(id);
  }

  it(
    "snapshots have the data of their times",
    async () => {
      for (const version of ["one", "two"]) {
        await run(cache, "SET", "version", version);
        snapshots.push(await takeBackup());
      }
      await run(cache, "SET", "version", "three");
      expect(snapshots).toMatchObject([
        { status: "completed", kind: "snapshot" },
        { status: "completed", kind: "snapshot" },
      ]);
    },
    longMs,
  );

  it(
    "a snapshot is restored by its id or a later time, and forked; the source is unchanged",
    async () => {
      const [first, second] = snapshots;
      if (first === undefined || second === undefined) throw new Error("there are no snapshots");
      // A time at which the first snapshot was the newest.
      const between = new Date(Date.parse(second.restores_to) - 1).toISOString();
      const responses = [
        await platform.rest.post(backupsOf(`/${first.id}/restore`), { name: "by-id" }),
        await platform.rest.post(backupsOf("/restore"), { target_service_name: "by-point", restore_point: between }),
        await platform.rest.post(`/managed-services/${cache.service.id}/fork`, { name: "forked" }),
      ];
      for (const response of responses) expectStatus(response, 202);
      expect(responses.map(({ json }) => json["restored_from"])).toMatchObject([
        { kind: "restore", backup_id: first.id, restore_point: null, restores_to: first.restores_to },
        { kind: "restore", backup_id: first.id, restore_point: null, restores_to: first.restores_to },
        { kind: "fork", backup_id: second.id, restores_to: second.restores_to },
      ]);
      const warnings = responses.map(
        ({ json }) => (json as { operation?: { warnings?: string[] } }).operation?.warnings,
      );
      expect(warnings).toEqual([[], [expect.stringContaining(`are those of ${first.restores_to}`)], []]);
      const copies = await Promise.all(responses.map(created));
      expect(await Promise.all(copies.map((copy) => run(copy, "GET", "version")))).toEqual(["one", "one", "two"]);
      for (const copy of copies) expect(copy.password).not.toBe(cache.password);
      expect(await run(cache, "GET", "version")).toBe("three");
      expect(await services.get(cache.service.id)).toMatchObject({ restored_from: null });
    },
    longMs,
  );

  it("rejects a time before the first snapshot or after the last, and names the first and the last", async () => {
    const [first, second] = snapshots;
    const after = new Date(Date.parse(second?.restores_to ?? "") + 1).toISOString();
    for (const restore_point of ["2020-01-01T00:00:00Z", after]) {
      const body = { target_service_name: "before", restore_point };
      const { status, json } = await platform.rest.post(backupsOf("/restore"), body);
      expect([status, json]).toMatchObject([
        422,
        { code: "restore_point_unavailable", earliest: first?.restores_to, latest: second?.restores_to },
      ]);
    }
  });

  it(
    "a drill loads the newest snapshot and counts its keys",
    async () => {
      const { id } = expectStatus(await platform.rest.post<{ id: string }>(backupsOf("/drill")), 202).json;
      const drill = await drilled(platform, cache.service.id, id);
      expect(drill).toMatchObject({ status: "completed", error: null, target: null });
      expect(drill.checks.map(({ name, of, passed }) => [name, of, passed])).toEqual([
        ["restored", "backup", true],
        ["contents", "backup", true],
      ]);
      await noDrillMachines(platform);
    },
    longMs,
  );

  it(
    "a deleted service returns with its keys, its hostname and its password",
    async () => {
      // Until its session ends, and beyond its final snapshot's beginning.
      const { acknowledged, ended } = writeUntilEnd(async (next, note) => {
        const client = await openValkey(platform, cache.connection, { password: cache.password });
        for (let n = next(); ; n = next()) {
          await client.sadd("late", n);
          note(n);
        }
      });
      await waitUntil("keys are acknowledged", () => acknowledged.length > 100, { everyMs: 20 });
      await services.delete(cache.service.id);
      await ended;
      const undeleted = await created(await platform.rest.post(`/managed-services/${cache.service.id}/undelete`));
      expect(undeleted.service).toMatchObject({ id: cache.service.id, hostname: cache.service.hostname });
      expect(undeleted.password).toBe(cache.password);
      expect(await run(undeleted, "GET", "version")).toBe("three");
      const found = new Set(((await run(undeleted, "SMEMBERS", "late")) as string[]).map(Number));
      expect(acknowledged.filter((n) => !found.has(n))).toEqual([]);
    },
    longMs,
  );
});
