import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { BackupService } from "@holdfast/proto/holdfast/admin/v1/backup_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "../support/api/clients.ts";
import type { GrpcCalls } from "../support/api/grpc-calls.ts";
import { type CommandLine, createCommandLine } from "../support/platform/command-line.ts";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import type { ServiceJson } from "../support/api/service-json.ts";
import { createServices, expectStatus, type RunningService, type Services } from "../support/platform/services.ts";
import { type DrillJson, drilled, noDrillMachines } from "../support/platform/drills.ts";
import { asOperator } from "../support/platform/organizations.ts";
import { waitUntil } from "../support/wait-until.ts";

interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly backup_type: string;
  readonly size_bytes: number | null;
  readonly error_message: string | null;
  readonly key_version: number;
  readonly verified_at: string | null;
  readonly operation_id: string;
}

const longMs = 120_000;
const rows = 20_000;

/** One PostgreSQL whose data go through all that backups do, mostly by the commands that users have for it. */
describe("backups of a service", () => {
  let platform: Platform;
  let services: Services;
  let source: RunningService;
  let first: BackupJson;
  let shell: CommandLine;

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1" } });
    services = createServices(platform);
    shell = createCommandLine({ HOLDFAST_DATA: platform.directory });
    source = await services.createRunning("orders", {
      allowed_cidrs: ["127.0.0.0/8"],
      parameters: { work_mem: "5MB" },
    });
  }, longMs);
  afterAll(async () => {
    shell?.remove();
    await platform?.remove();
  }, longMs);

  /** What the command answers, which must not fail. */
  async function holdfast<T>(line: string): Promise<T> {
    const ran = await shell.run(["--output", "json", ...line.split(" ")]);
    expect(ran, line).toMatchObject({ code: 0 });
    return JSON.parse(ran.stdout) as T;
  }

  const pathOf = (id: string, rest = "") => `/managed-services/${id}/backups${rest}`;
  const read = async (id: string) =>
    expectStatus(await platform.rest.get<BackupJson>(pathOf(source.service.id, `/${id}`)), 200).json;

  async function sql(of: RunningService, text: string, password = of.password): Promise<Record<string, unknown>[]> {
    const client = await openPostgresql(platform, of.connection, { password });
    try {
      return (await client.query(text)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  }
  const digest = async (of: RunningService) =>
    (await sql(of, "SELECT count(*)::int AS count, md5(string_agg(text, ',' ORDER BY i)) AS sum FROM kept"))[0];

  async function taken(): Promise<BackupJson> {
    const backup = await holdfast<BackupJson>("backups create orders --wait");
    expect(backup).toMatchObject({ backup_type: "manual", encryption_algorithm: "AES-256-GCM" });
    return backup;
  }

  async function ended(id: string): Promise<BackupJson> {
    const look = async () => {
      const backup = await read(id);
      return ["completed", "failed"].includes(backup.status) ? backup : undefined;
    };
    const describe = () => services.describe(source.service.id);
    return waitUntil(`the backup ${id} has ended`, look, { withinMs: longMs, everyMs: 100, describe });
  }

  /** The service that the command makes, once it runs. */
  async function made(line: string): Promise<RunningService> {
    const { id } = await holdfast<ServiceJson>(`${line} --wait`);
    await services.settled(id, "Running", longMs);
    return services.open(id);
  }

  const window = async () => (await services.get(source.service.id)).backups;

  /** Resolves when a base was taken since the service was gone, and the log reaches behind it, long before the daily one. */
  async function coveredAnew(since: string): Promise<void> {
    const isCovered = async () => {
      const { restorable, last_completed_at: base } = (await window()) ?? {};
      return (base ?? "") > since && (restorable?.to ?? "") > (base ?? "");
    };
    const describe = () => services.describe(source.service.id);
    await waitUntil("what it does since can be restored", isCovered, { withinMs: longMs, everyMs: 200, describe });
  }

  it(
    "a manual backup is completed, and sealed",
    async () => {
      await sql(source, `CREATE TABLE kept AS SELECT i, md5(i::text) AS text FROM generate_series(1, ${rows}) AS i`);
      await sql(source, "CREATE ROLE made_in_sql LOGIN PASSWORD 'known to the source'");
      first = await taken();
      expect(first).toMatchObject({ status: "completed", error_message: null, key_version: 1 });
      expect(first.size_bytes).toBeGreaterThan(100_000);
      const { backups } = (await services.get(source.service.id)) as {
        backups: { last_completed_at: string };
      } & ServiceJson;
      expect(backups.last_completed_at).not.toBeNull();
    },
    longMs,
  );

  it(
    "rows that were deleted since are in services restored and forked from it, with passwords of their own",
    async () => {
      const before = await digest(source);
      await sql(source, "DELETE FROM kept WHERE i % 2 = 0");
      const after = await digest(source);
      const [copy, fork] = await Promise.all([
        made(`services restore orders --name orders-before --backup ${first.id}`),
        made("services fork orders orders-fork"),
      ]);
      expect(await digest(source)).toEqual(after);
      for (const one of [copy, fork]) {
        expect(one.service).toMatchObject({ database_type: "postgresql", allowed_cidrs: ["127.0.0.0/8"] });
        expect(one.service.hostname).not.toBe(source.service.hostname);
        expect(await digest(one)).toEqual(before);
        const path = `/managed-services/${one.service.id}/events?type=service.restored`;
        // An event is in the store with what it tells of, and in the history a moment later.
        const events = await waitUntil("its restore is told", async () => {
          const told = await platform.rest.get<{ events: { data: object }[] }>(path);
          return expectStatus(told, 200).json.events.length > 0 && told.json.events;
        });
        expect(events).toMatchObject([{ data: { source_service_id: source.service.id } }]);
        expect((await sql(one, "SHOW work_mem"))[0]).toEqual({ work_mem: "5MB" });
        expect(one.password).not.toBe(source.password);
        await expect(sql(one, "SELECT 1", source.password)).rejects.toThrow(/authentication failed/);
        const reader = { ...one.connection, user: "made_in_sql" };
        await expect(openPostgresql(platform, reader, { password: "known to the source" })).rejects.toThrow(
          /authentication failed/,
        );
      }
      const gone = await platform.rest.delete(`/managed-services/${fork.service.id}?skip_final_backup=true`);
      expectStatus(gone, 202);
      await services.gone(fork.service.id);
      expect((await platform.rest.post(`/managed-services/${fork.service.id}/undelete`)).status).toBe(404);
    },
    longMs,
  );

  it("a backup is verified whole, also after its key was rotated", async () => {
    expect(await holdfast("backups rotate-key orders")).toMatchObject({ key_version: 2 });
    const verified = await holdfast<BackupJson>(`backups verify orders ${first.id} --wait`);
    expect(verified.verified_at).not.toBeNull();
    const operations = await services.operations(source.service.id);
    expect(operations).toContainEqual(expect.objectContaining({ type: "verify_backup", status: "completed" }));
  });

  it("says why not, when it cannot", async () => {
    const { id } = source.service;
    const { rest } = platform;
    const nowhere = pathOf(id, `/${id}`);
    const target = { target_service_name: "orders" };
    const future = { restore_point: "2100-01-01T00:00:00Z", target_service_name: "x" };
    const wrong = { backup_type: "automated" };
    const settings = `/managed-services/${id}/backup-settings`;
    const automated = await waitUntil("an automated backup is there", async () => {
      const { json } = await rest.get<{ backups: BackupJson[] }>(pathOf(id, "?type=automated&limit=1"));
      return json.backups[0]?.id;
    });
    const refused: readonly (readonly [{ status: number; json: unknown }, number, string])[] = [
      [await rest.get(nowhere), 404, "backup_not_found"],
      [await rest.post(pathOf(id), wrong), 400, "invalid_request"],
      [await rest.delete(pathOf(id, `/${automated}`)), 409, "wrong_state"],
      [await rest.patch(settings, { retention_days: 31 }), 400, "invalid_request"],
      [await rest.patch(settings, { hour: 24 }), 400, "invalid_request"],
      [await rest.post(pathOf(id, `/${first.id}/cancel`)), 409, "wrong_state"],
      [await rest.post(pathOf(id, `/${first.id}/restore`), target), 409, "name_taken"],
      [await rest.post(pathOf(id, `/${first.id}/restore`), { ...target, storage_size_gb: 0 }), 400, "invalid_request"],
      [await rest.post(pathOf(id, "/restore"), future), 422, "restore_point_unavailable"],
      [
        await rest.post(pathOf(id, "/restore"), { ...future, restore_point: "2026-01-01T00:00:00" }),
        400,
        "invalid_request",
      ],
      [await rest.post(`/managed-services/${id}/undelete`), 409, "wrong_state"],
    ];
    for (const [answer, status, code] of refused) expect(answer).toMatchObject({ status, json: { code } });
  });

  it("keeps the settings that were chosen", async () => {
    const chosen = { hour: 4, minute: 5, retention_days: 30 };
    expect(await holdfast("backups settings orders --hour 4 --minute 5 --retention-days 30")).toMatchObject(chosen);
    expect(await holdfast("backups settings orders --retention-days 7")).toMatchObject({
      ...chosen,
      retention_days: 7,
    });
    expect(await holdfast("backups settings orders")).toMatchObject({ hour: 4, minute: 5, retention_days: 7 });
  });

  it(
    "one that is cancelled has failed, and leaves the good ones alone",
    async () => {
      const asked = expectStatus(await platform.rest.post<BackupJson>(pathOf(source.service.id)), 202).json;
      expectStatus(await platform.rest.post(pathOf(source.service.id, `/${asked.id}/cancel`)), 202);
      expect(await ended(asked.id)).toMatchObject({
        status: "failed",
        error_message: expect.stringContaining("cancelled"),
      });
      expect(await read(first.id)).toMatchObject({ status: "completed" });
    },
    longMs,
  );

  it(
    "rows are brought back as they were at a second that no backup is of",
    async () => {
      const { id } = source.service;
      const restorable = async () => (await services.get(id)).backups?.restorable ?? null;
      const wait = { withinMs: longMs, everyMs: 200 };
      await waitUntil("the log goes on from a base", async () => (await restorable()) !== null, wait);
      await sql(source, "CREATE TABLE later AS SELECT generate_series(1, 100) AS i");
      const point = new Date().toISOString();
      await sql(source, "SELECT pg_sleep(1); DELETE FROM later");
      await waitUntil("it is durable", async () => ((await restorable())?.to ?? "") > point, wait);
      const then = await made(`services restore orders --name orders-then --to ${point}`);
      expect(await sql(then, "SELECT count(*)::int AS count FROM later")).toEqual([{ count: 100 }]);
      expect(await sql(source, "SELECT count(*)::int AS count FROM later")).toEqual([{ count: 0 }]);
    },
    longMs,
  );

  it(
    "a drill restores the newest backup and a moment, examines both, and leaves no machine behind",
    async () => {
      const { id } = source.service;
      const asked = expectStatus(await platform.rest.post<DrillJson>(pathOf(id, "/drill")), 202).json;
      expect(asked).toMatchObject({ status: "pending", trigger: "request", finished_at: null });
      expect((await platform.rest.post(pathOf(id, "/drill"))).status).toBe(409);
      const drill = await drilled(platform, id, asked.id);
      expect(drill).toMatchObject({ status: "completed", error: null });
      expect(drill.target).not.toBeNull();
      expect(drill.checks.map(({ name, of, passed }) => [name, of, passed])).toEqual([
        ["restored", "backup", true],
        ["structure", "backup", true],
        ["restored", "target", true],
        ["structure", "target", true],
        ["heartbeat", "target", true],
      ]);
      const operation = await platform.rest.get<object>(`/operations/${drill.operation_id}`);
      expect(operation.json).toMatchObject({ type: "drill", status: "completed", service_id: id });
      expect(await services.get(id)).toMatchObject({
        status: "Running",
        backups: { last_drill: { id: drill.id, passed: true, error: null } },
      });
      await noDrillMachines(platform);
    },
    longMs,
  );

  it(
    "a service that was deleted comes back with its rows, its hostname and its password",
    async () => {
      const before = await digest(source);
      const from = (await window())?.restorable?.from;
      expect(from).toBeDefined();
      await shell.run(["services", "delete", "orders", "--yes", "--wait"]);
      const list = await holdfast<ServiceJson[]>("services list --deleted");
      expect(list.map(({ id }) => id)).toContain(source.service.id);
      const gone = new Date().toISOString();
      const back = await made(`services undelete ${source.service.id}`);
      expect(back.service).toMatchObject({ id: source.service.id, name: "orders", hostname: source.service.hostname });
      expect(back.password).toBe(source.password);
      const reader = { ...back, connection: { ...back.connection, user: "made_in_sql" } };
      expect(await sql(reader, "SELECT current_user", "known to the source")).toEqual([
        { current_user: "made_in_sql" },
      ]);
      expect(await digest(back)).toEqual(before);
      // What could be restored before still can, whatever becomes of the new archive.
      expect((await window())?.restorable?.from).toBe(from);
      await coveredAnew(gone);
      expect(await window()).toMatchObject({ restorable: { from }, gaps: [expect.anything()] });
      const { restorable, gaps = [] } = (await window()) ?? {};
      const middle = gaps.at(0) ?? { from: "", to: "" };
      const restore_point = new Date((Date.parse(middle.from) + Date.parse(middle.to)) / 2).toISOString();
      const asked = { restore_point, target_service_name: "orders-nowhen" };
      const answer = await platform.rest.post(pathOf(source.service.id, "/restore"), asked);
      expect(expectStatus(answer, 422).json).toMatchObject({
        code: "restore_point_unavailable",
        earliest: restorable?.from,
        gaps,
      });
    },
    2 * longMs,
  );

  it(
    "a service that comes back on its disk has a base at once too, and its log has no further gap",
    async () => {
      const { id } = source.service;
      const before = await window();
      await services.verb(id, "stop");
      expectStatus(await platform.rest.post(pathOf(id)), 409);
      expectStatus(await platform.rest.post(`/managed-services/${id}/fork`, { name: "orders-fork" }), 409);
      await services.delete(id);
      const gone = new Date().toISOString();
      await made(`services undelete ${id}`);
      await coveredAnew(gone);
      expect(await window()).toMatchObject({ restorable: { from: before?.restorable?.from }, gaps: before?.gaps });
    },
    2 * longMs,
  );

  it("operators see its archive, the ranges of its log and what retention would end", async () => {
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

  it("a manual backup goes when it is deleted, with its bytes", async () => {
    await shell.run(["backups", "delete", "orders", first.id, "--yes"]);
    expect((await platform.rest.get(pathOf(source.service.id, `/${first.id}`))).status).toBe(404);
  });
});
