import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createRandom } from "@holdfast/testing/random.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** A row with the times at which its write began and was acknowledged, in milliseconds of the engine's clock. */
interface Written {
  readonly i: number;
  readonly startedAt: number;
  readonly acknowledgedAt: number;
}

interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly restores_to: string;
}

const longMs = 240_000;
/** 100 with `npm run faults -- --backups`. */
const targetsOfRandom = process.env["HOLDFAST_TEST_BACKUPS"] === "all" ? 95 : 7;
/** Time limit of all restores. */
const restoringMs = 240_000 + targetsOfRandom * 10_000;
const restoresAtOnce = 3;

describe("any second of a PostgreSQL", () => {
  let platform: Platform;
  let services: Services;
  let ledger: RunningService;
  const written: Written[] = [];
  /** Number of times that the writer lost its connection. */
  let interruptions = 0;
  let underLoad: BackupJson | undefined;
  /** Points in time to restore to, each with its reason. */
  const targets: { readonly why: string; readonly at: number }[] = [];

  beforeAll(async () => {
    platform = await startPlatform({
      environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" },
    });
    services = createServices(platform);
    ledger = await services.createRunning("ledger", { allowed_cidrs: ["127.0.0.0/8"] });
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  async function withClient<T>(of: RunningService, work: (client: Client) => Promise<T>): Promise<T> {
    const client = await openPostgresql(platform, of.connection, { password: of.password });
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }

  let next = 1;

  /** Writes rows until the signal is aborted; errors of the engine are ignored. */
  async function write(signal: AbortSignal, everyMs: number): Promise<void> {
    while (!signal.aborted) {
      try {
        await withClient(ledger, async (client) => {
          client.on("error", () => undefined);
          while (!signal.aborted) {
            const startedAt = Date.now();
            const i = next;
            next += 1;
            await client.query("INSERT INTO entries VALUES ($1)", [i]);
            written.push({ i, startedAt, acknowledgedAt: Date.now() });
            // Time: the rate of the writer.
            await sleep(everyMs);
          }
        });
      } catch {
        interruptions += 1;
        // Time: the rate of reconnections.
        await sleep(50);
      }
    }
  }

  const noteTarget = (why: string) => void targets.push({ why, at: Date.now() });
  const restorable = async () => (await services.get(ledger.service.id)).backups?.restorable ?? null;

  it(
    "accepts writes through a restart, a rotated key and other settings, and then is idle",
    async () => {
      const { id } = ledger.service;
      await withClient(ledger, async (client) => {
        await client.query(
          "CREATE TABLE ballast AS SELECT i, repeat(md5(i::text), 8) AS line FROM generate_series(1, 180000) AS i",
        );
        await client.query("CREATE TABLE entries (i int PRIMARY KEY)");
      });
      const wait = { withinMs: longMs, everyMs: 200, describe: () => services.describe(id) };
      // The first base may be older than the tables.
      const since = new Date().toISOString();
      await waitUntil(
        "a base exists, with the log after it",
        async () => ((await restorable())?.to ?? "") > since,
        wait,
      );
      const halt = new AbortController();
      // Their commits overtake each other between their times and their positions in the log.
      const writing = Promise.all([20, ...Array.from({ length: 7 }, () => 1)].map((ms) => write(halt.signal, ms)));
      const count = async (more: number) => {
        const expectedCount = written.length + more;
        await waitUntil("rows are acknowledged", () => written.length >= expectedCount, { ...wait, everyMs: 20 });
      };
      await count(50);
      noteTarget("under load");
      const restarting = services.verb(id, "restart");
      await waitUntil("the writer has lost the engine", () => interruptions > 0, { ...wait, everyMs: 20 });
      noteTarget("across a restart");
      await restarting;
      await count(20);
      expectStatus(await platform.rest.post(`/managed-services/${id}/backups/rotate-key`), 202);
      await count(50);
      noteTarget("behind a rotated key");
      const changed = await platform.rest.patch(`/managed-services/${id}/configuration`, {
        parameters: { work_mem: "5MB" },
      });
      expect(changed.status).toBeLessThan(300);
      await count(50);
      noteTarget("behind other settings");
      const requested = await platform.rest.post<BackupJson>(`/managed-services/${id}/backups`);
      const { id: backupId } = expectStatus(requested, 202).json;
      const backupOf = async () =>
        expectStatus(await platform.rest.get<BackupJson>(`/managed-services/${id}/backups/${backupId}`), 200).json;
      const isCompleted = async () => (await backupOf()).status === "completed";
      await waitUntil("a base is taken under load", isCompleted, wait);
      underLoad = await backupOf();
      await count(50);
      halt.abort();
      await writing;
      // The newest commit until then is the writer's; that of the heartbeat after it is awaited below.
      noteTarget("without writes");
      const random = createRandom(13);
      const [first, last] = [written[0]?.acknowledgedAt ?? 0, written.at(-1)?.acknowledgedAt ?? 0];
      for (let n = 0; n < targetsOfRandom; n += 1)
        targets.push({ why: "at random", at: Math.floor(first + random.next() * (last - first)) });
      const end = new Date(Math.max(...targets.map(({ at }) => at))).toISOString();
      await waitUntil("all of it is durable", async () => ((await restorable())?.to ?? "") > end, wait);
    },
    longMs,
  );

  it(
    "has every row that was acknowledged until then, and no later one",
    async () => {
      const { id } = ledger.service;
      const waiting = targets.map((target, index) => ({ ...target, name: `then-${index}` }));
      const total = waiting.length;
      expect(total).toBeGreaterThanOrEqual(12);
      const rowsOf = async (copy: ServiceJson) => {
        await services.settled(copy.id, "Running", longMs);
        const found = await withClient(await services.open(copy.id), (client) =>
          client.query<{ i: number }>("SELECT i FROM entries"),
        );
        await platform.rest.delete(`/managed-services/${copy.id}?skip_final_backup=true`);
        return new Set(found.rows.map(({ i }) => i));
      };
      const byId = await platform.rest.post<ServiceJson>(
        `/managed-services/${id}/backups/${underLoad?.id ?? ""}/restore`,
        { target_service_name: "by-id" },
      );
      const brought = await rowsOf(expectStatus(byId, 202).json);
      const restoresTo = Date.parse(underLoad?.restores_to ?? "");
      const acknowledged = written.filter(({ acknowledgedAt }) => acknowledgedAt < restoresTo);
      expect(acknowledged.length).toBeGreaterThan(0);
      expect(acknowledged.filter(({ i }) => !brought.has(i))).toEqual([]);
      const restoreAll = async () => {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
          const { why, at, name: target_service_name } = next;
          const body = { restore_point: new Date(at).toISOString(), target_service_name };
          const response = await platform.rest.post<ServiceJson>(`/managed-services/${id}/backups/restore`, body);
          const rows = await rowsOf(expectStatus(response, 202).json);
          // Times are in milliseconds: within the target's own one the order is unknown.
          const missing = written.filter(({ i, acknowledgedAt }) => acknowledgedAt < at && !rows.has(i));
          const tooNew = written.filter(({ i, startedAt }) => startedAt > at && rows.has(i));
          expect({ why, at, missing, early: tooNew }).toEqual({ why, at, missing: [], early: [] });
        }
      };
      await Promise.all(Array.from({ length: restoresAtOnce }, restoreAll));
    },
    restoringMs,
  );
});
