import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql, openValkey } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { reserveMillisecond } from "@holdfast/testing/reserve-millisecond.ts";
import { dueSoonAfter } from "@holdfast/testing/platform/daily-backups.ts";
import { type DrillJson, drilled } from "@holdfast/testing/platform/drills.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { type RecoveredPlatform, recoverPlatform } from "@holdfast/testing/platform/recovered-platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { createStoredDescriptors } from "@holdfast/testing/platform/stored-descriptors.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

interface BackupJson {
  readonly id: string;
  readonly created_at: string;
  readonly status: string;
  readonly kind: string;
  readonly trigger: string;
  readonly base_backup_id: string | null;
  readonly size_bytes: number;
  readonly source_bytes: number;
  readonly key_version: number;
  readonly verified_at: string | null;
  readonly expires_at: string;
}

const minuteMs = 60_000;
const longMs = 4 * minuteMs;
/** Another one with `npm run faults -- --backups`: each begins in another minute. */
const increments = process.env["HOLDFAST_TEST_BACKUPS"] === "all" ? 2 : 1;
const environment = { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "2" };

/**
 * A PostgreSQL whose daily backups are increments of each other; at the end, of it and of a Valkey, only the store
 * remains.
 */
describe("daily backups", () => {
  let platform: Platform;
  let services: Services;
  let source: RunningService;
  let cache: RunningService;
  let chain: BackupJson[];
  let manual: BackupJson;
  let recovered: RecoveredPlatform | undefined;

  beforeAll(async () => {
    platform = await startPlatform({ environment });
    services = createServices(platform);
    const allowed_cidrs = ["127.0.0.0/8"];
    [source, cache] = await Promise.all([
      services.createRunning("orders", { allowed_cidrs, parameters: { work_mem: "5MB" } }),
      services.createRunning("cache", { allowed_cidrs, database_type: "valkey" }),
    ]);
  }, longMs);
  afterAll(() => Promise.all([platform?.remove(), recovered?.remove()]), longMs);

  const pathOf = (rest = "") => `/managed-services/${source.service.id}/backups${rest}`;
  const automated = async () => {
    const response = await platform.rest.get<{ backups: BackupJson[] }>(pathOf("?type=automated&status=completed"));
    return expectStatus(response, 200).json.backups.toReversed();
  };

  async function sql(
    { connection, password }: RunningService,
    text: string,
    within = platform,
    as: { readonly user?: string; readonly password?: string } = {},
  ): Promise<Record<string, unknown>[]> {
    const client = await openPostgresql(within, connection, { password, ...as });
    try {
      return (await client.query(text)).rows as Record<string, unknown>[];
    } finally {
      await client.end();
    }
  }
  async function valkey<T>(
    { connection, password }: RunningService,
    within: Platform,
    work: (client: Valkey) => Promise<T>,
  ) {
    const client = await openValkey(within, connection, { password });
    try {
      return await work(client);
    } finally {
      client.disconnect();
    }
  }
  type Valkey = Awaited<ReturnType<typeof openValkey>>;
  const contents = "SELECT count(*)::int AS count, md5(string_agg(text, ',' ORDER BY i)) AS sum FROM kept";
  const digest = async (of: RunningService, within = platform) => (await sql(of, contents, within))[0];

  async function created(response: { status: number; text: string; json: unknown }): Promise<RunningService> {
    const { id } = expectStatus(response, 202).json as ServiceJson;
    await services.settled(id, "Running", longMs);
    return services.open(id);
  }

  async function daily(count: number): Promise<BackupJson[]> {
    const newest = (await automated()).at(-1);
    if (newest === undefined) throw new Error("there is no automated backup");
    const path = `/managed-services/${source.service.id}/backup-settings`;
    expectStatus(await platform.rest.patch(path, dueSoonAfter(newest)), 200);
    return completed(count);
  }

  function completed(count: number): Promise<BackupJson[]> {
    const check = async () => {
      const found = await automated();
      return found.length >= count ? found : undefined;
    };
    const describe = () => services.describe(source.service.id);
    return waitUntil(`${count} automated backups are completed`, check, { withinMs: longMs, everyMs: 200, describe });
  }

  function durableTo(point: string): Promise<unknown> {
    const isDurable = async () => ((await services.get(source.service.id)).backups?.restorable?.to ?? "") > point;
    return waitUntil(`the log is durable to ${point}`, isDurable, { withinMs: longMs, everyMs: 200 });
  }

  it(
    "are a full one and increments since it, under any keys, and a manual one is full",
    async () => {
      await completed(1);
      await sql(source, "CREATE TABLE kept AS SELECT i, md5(i::text) AS text FROM generate_series(1, 20000) AS i");
      if (increments > 1) await daily(2);
      expectStatus(await platform.rest.post(pathOf("/rotate-key")), 202);
      await sql(source, "DELETE FROM kept WHERE i % 3 = 0");
      await sql(source, "INSERT INTO kept SELECT i, md5(i::text) FROM generate_series(20001, 30000) AS i");
      chain = await daily(1 + increments);
      const [full, ...incremental] = chain;
      expect(full).toMatchObject({ kind: "full", trigger: "first", base_backup_id: null, key_version: 1 });
      expect(incremental).toHaveLength(increments);
      for (const [at, increment] of incremental.entries()) {
        const key_version = at + 1 === increments ? 2 : 1;
        const base = { kind: "incremental", trigger: "schedule", base_backup_id: chain[at]?.id, key_version };
        expect(increment).toMatchObject(base);
        expect(increment.size_bytes).toBeLessThan(full?.size_bytes ?? 0);
      }
      // A backup that an increment needs is retained as long as it.
      expect(new Set(chain.map(({ expires_at }) => expires_at))).toEqual(new Set([chain.at(-1)?.expires_at]));
      manual = expectStatus(await platform.rest.post<BackupJson>(pathOf()), 202).json;
      expect(manual).toMatchObject({ kind: "full", base_backup_id: null });
    },
    3 * longMs,
  );

  it(
    "of any kind are fully verified, restored, forked, drilled, and continued by the log",
    async () => {
      const before = await digest(source);
      const newest = chain.at(-1)?.id ?? "";
      expectStatus(await platform.rest.post(pathOf(`/${newest}/verify`)), 202);
      const point = new Date(await reserveMillisecond()).toISOString();
      await sql(source, "DELETE FROM kept");
      await durableTo(point);
      const [copy, fork, earlier] = await Promise.all([
        platform.rest.post(pathOf(`/${newest}/restore`), { target_service_name: "orders-copy" }).then(created),
        platform.rest
          .post(`/managed-services/${source.service.id}/fork`, { name: "orders-fork", backup_id: newest })
          .then(created),
        platform.rest
          .post(pathOf("/restore"), { restore_point: point, target_service_name: "orders-then" })
          .then(created),
      ]);
      for (const restored of [copy, fork, earlier]) expect(await digest(restored)).toEqual(before);
      const verified = async () => (await automated()).at(-1)?.verified_at !== null;
      await waitUntil("the chain was read", verified, { withinMs: longMs, everyMs: 200 });
      const requested = expectStatus(await platform.rest.post<DrillJson>(pathOf("/drill")), 202).json;
      const drill = await drilled(platform, source.service.id, requested.id);
      expect(drill).toMatchObject({ status: "completed", error: null });
    },
    3 * longMs,
  );

  it(
    "restore services under their names, to the newest point, from the object store alone",
    async () => {
      const { descriptorOf, passwordIn } = createStoredDescriptors(platform);
      const ended = async () => {
        const response = await platform.rest.get<BackupJson>(pathOf(`/${manual.id}`));
        return ["completed", "failed"].includes(expectStatus(response, 200).json.status);
      };
      const wait = { withinMs: longMs, everyMs: 200, describe: () => services.describe(source.service.id) };
      await waitUntil("the manual backup has ended", ended, wait);
      expectStatus(await platform.rest.delete(pathOf(`/${manual.id}`)), 204);
      await valkey(cache, platform, (client) => client.set("kept", "value"));
      // All of this is after the newest base.
      await sql(source, "INSERT INTO kept SELECT i, md5(i::text) FROM generate_series(1, 500) AS i");
      await sql(source, "CREATE ROLE made_in_sql LOGIN PASSWORD 'of their own'");
      const { id } = source.service;
      const { user } = source.connection;
      const reset = await platform.rest.post<{ password: string }>(
        `/managed-services/${id}/database-users/${user}/reset-password`,
      );
      const { password } = expectStatus(reset, 200).json;
      source = { ...source, password };
      // A password that was revealed is in the store.
      expect(await passwordIn(await descriptorOf(id), user)).toBe(password);
      expectStatus(await platform.rest.post(pathOf("/rotate-key")), 202);
      await sql(source, "INSERT INTO kept VALUES (501, 'under the newest key')");
      const before = await digest(source);
      const point = new Date().toISOString();
      await durableTo(point);
      const snapshots = `/managed-services/${cache.service.id}/backups`;
      const snapshot = expectStatus(await platform.rest.post<BackupJson>(snapshots), 202).json.id;
      const isDescribed = async () => {
        const of = await descriptorOf(cache.service.id);
        return of?.backups.some(({ metadata }) => metadata.id === snapshot) === true;
      };
      await waitUntil("the snapshot is described", isDescribed, wait);
      const newestKey = async () => (await descriptorOf(id))?.archive.spec.log?.keyVersion;
      await waitUntil("the new key is described", async () => (await newestKey()) === 3, wait);

      recovered = await recoverPlatform(platform, environment);
      const found = recovered.platform;
      const after = createServices(found);
      await Promise.all([source, cache].map(({ service }) => after.settled(service.id, "Running", longMs)));
      const [ofPostgresql, ofValkey] = [await after.open(id), await after.open(cache.service.id)];
      expect(ofPostgresql.service).toMatchObject({ name: "orders", hostname: source.service.hostname });
      expect(ofValkey.service).toMatchObject({ name: "cache", hostname: cache.service.hostname });
      expect([ofPostgresql.password, ofValkey.password]).toEqual([password, cache.password]);
      expect(await digest(ofPostgresql, found)).toEqual(before);
      expect(await sql(ofPostgresql, "SHOW work_mem", found)).toEqual([{ work_mem: "5MB" }]);
      await sql(ofPostgresql, "SELECT 1", found, { user: "made_in_sql", password: "of their own" });
      expect(await valkey(ofValkey, found, (client) => client.get("kept"))).toBe("value");
      const response = await found.rest.get<{ restored_from: { backup_id: string } }>(`/managed-services/${id}`);
      expect(expectStatus(response, 200).json.restored_from.backup_id).toBe(chain.at(-1)?.id);

      // The same store continues: the old log is read to its end, and a new archive has begun.
      const body = { restore_point: point, target_service_name: "then-again" };
      const earlier = expectStatus(await found.rest.post<ServiceJson>(pathOf("/restore"), body), 202).json;
      await after.settled(earlier.id, "Running", longMs);
      expect(await digest(await after.open(earlier.id), found)).toEqual(before);
      const began = new Date().toISOString();
      const to = async () => (await after.get(id)).backups?.restorable?.to ?? "";
      const describe = () => after.describe(id);
      await waitUntil("its new log continues from a new base", async () => (await to()) > began, { ...wait, describe });
    },
    3 * longMs,
  );
});
