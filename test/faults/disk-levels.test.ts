import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql, openValkey, queryOnce } from "@holdfast/testing/api/clients.ts";
import { startQueueWorkload } from "@holdfast/testing/api/queue-workload.ts";
import { numbersOf, queuesOf } from "@holdfast/testing/api/service-queues.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";

const run = promisify(execFile);
const longMs = 600_000;

// Only root gives each machine a separate disk that can be full.
describe.skipIf(!asRoot)("a data disk that fills", () => {
  let platform: Platform;
  let services: Services;
  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
  }, longMs);
  afterAll(() => platform?.remove());

  const post = (id: string, path: string, body: object = {}) =>
    platform.rest.post<ProblemJson>(`/managed-services/${id}/${path}`, body);

  async function percentsOf(id: string, type: string): Promise<number[]> {
    const path = `/managed-services/${id}/events?type=${type}`;
    const { json } = await platform.rest.get<{ events: { data: { used_pct: number } }[] }>(path);
    return json.events.map(({ data }) => data.used_pct);
  }

  const isBlocked = async (id: string) =>
    (await services.get(id)).health.checks.some(
      ({ name, reason }) => name === "storage" && reason?.includes("blocked"),
    );

  async function released(id: string, write: () => Promise<unknown>): Promise<void> {
    const options = { everyMs: 300, describe: () => services.describe(id) };
    await waitUntil("writes are taken again", async () => (await write(), true), options);
    await waitUntil("its event is emitted", async () => !(await isBlocked(id)), options);
  }

  it(
    "of postgresql accepts writes until it is nearly full, loses none of them, and is released by deletes",
    async () => {
      const first: RunningService = await services.createRunning("filling");
      const { id } = first.service;
      const query = <R extends Record<string, unknown>>(sql: string) =>
        queryOnce<R>(platform, first.connection, first, sql);
      expect(expectStatus(await post(id, "enable-writes"), 409).json.code).toBe("wrong_state");
      await query("CREATE TABLE filler (id int PRIMARY KEY, line text STORAGE EXTERNAL)");
      await query("CREATE TABLE kept (id int PRIMARY KEY)");
      const queues = queuesOf(platform, id);
      await queues.create("blocked");
      const accepted = [1, 2];
      await queues.send("blocked", accepted);
      const claimed = await queues.claim("blocked", { visibility_timeout_seconds: 3_600 });
      const working = await startQueueWorkload(platform, id, "worked-on");
      let acknowledged = 0;
      const fill = async (): Promise<string> => {
        const client = await openPostgresql(platform, first.connection, first);
        try {
          for (;;) {
            const next = acknowledged + 1;
            await client.query("INSERT INTO kept VALUES ($1)", [next]);
            acknowledged = next;
            await client.query(
              "INSERT INTO filler SELECT $1, string_agg(md5(random()::text), '') FROM generate_series(1, 120000)",
              [next],
            );
          }
        } catch (error) {
          return error instanceof Error ? error.message : String(error);
        } finally {
          await client.end().catch(() => undefined);
        }
      };
      // A busy machine fills a gigabyte in minutes.
      const options = { withinMs: 300_000, everyMs: 200, describe: () => services.describe(id) };
      await waitUntil(
        "writes are blocked, and that is reported",
        async () => {
          // The last rejection has the reason; removed log segments may free a little space once more.
          await fill().catch(() => undefined);
          return (await isBlocked(id)) && (await percentsOf(id, "service.writes_blocked")).length > 0;
        },
        options,
      );
      expect((await percentsOf(id, "service.storage_low")).at(-1)).toBe(90);
      await waitUntil(
        "messages are refused, and claims",
        async () => {
          await fill().catch(() => undefined);
          const n = (accepted.at(-1) ?? 0) + 1;
          const messages = [{ payload: { n } }];
          const sent = await platform.rest.post<ProblemJson>(queues.path("/blocked/messages"), { messages });
          if (sent.status === 202) accepted.push(n);
          const claimed = await platform.rest.post<ProblemJson>(queues.path("/worked-on/messages/claim"), {});
          return [sent, claimed].every(({ status, json }) => status === 507 && json.code === "storage_full");
        },
        options,
      );
      expect(await queues.ack("blocked", claimed)).toMatchObject({ status: 200, json: { lost: [] } });
      await waitUntil(
        "writes are enabled",
        async () => {
          await fill().catch(() => undefined);
          return (await post(id, "enable-writes")).status === 202;
        },
        options,
      );
      const [rows] = await waitUntil(
        "it can be read",
        () => query<{ count: string }>(`SELECT count(*) FROM kept WHERE id <= ${acknowledged}`),
        options,
      );
      expect(Number(rows?.count)).toBe(acknowledged);
      await waitUntil("it can be deleted", async () => (await query("TRUNCATE filler"), true), options);
      await released(id, () => query("INSERT INTO filler VALUES (0, '')"));
      await working.check();
      expect(numbersOf(await queues.peek("blocked"))).toEqual(accepted.slice(1));
      expect(numbersOf(await queues.claim("blocked", { max: 100 }))).toEqual(accepted.slice(1));
      expect(await services.get(id)).toMatchObject({ status: "Running", operation: null });
      await services.delete(id);
    },
    longMs,
  );

  it(
    "of valkey accepts the same data repeatedly, with a log that never exceeds the disk",
    async () => {
      const first = await services.createRunning("rewritten", { database_type: "valkey", plan_name: "tier-2" });
      const client = await openValkey(platform, first.connection, first);
      try {
        const block = randomBytes(1 << 20);
        // 2.5 GiB on a disk of one.
        for (let n = 0; n < 2_560; n += 1) await client.set(`block-${n % 12}`, block);
        expect(await client.dbsize()).toBe(12);
      } finally {
        client.disconnect();
      }
      expect(await isBlocked(first.service.id)).toBe(false);
      await services.delete(first.service.id);
    },
    longMs,
  );

  it(
    "of valkey rejects writes while it is full, until a deletion or more storage releases it",
    async () => {
      const first = await services.createRunning("cache", { database_type: "valkey", plan_name: "tier-2" });
      const { id } = first.service;
      const client = await openValkey(platform, first.connection, first);
      try {
        // Another file takes most of the disk first; Valkey writes the rest. Random bytes do not compress on disk.
        const machine = first.service.nodes[0]?.id ?? "";
        const { engine } = platform.processes().machines.find(({ id }) => id === machine) ?? {};
        await run("fallocate", ["--length", "800MiB", pathInside(engine, "/data/filler")]);
        const block = randomBytes(1 << 20);
        let written = 0;
        const write = async () => {
          await client.set(`block-${written + 1}`, block);
          written += 1;
          return false;
        };
        const options = { everyMs: 100, describe: () => services.describe(id) };
        const refused = () =>
          waitUntil("writes are refused", () => write().catch((error: unknown) => /OOM/.test(String(error))), options);
        await refused();
        expect(await client.dbsize()).toBe(written);
        expect(await client.del("block-1")).toBe(1);
        expect(await client.flushall()).toBe("OK");
        await released(id, () => client.set("after", "1"));
        written = 0;
        await client.flushall();
        await refused();
        expect(await client.dbsize()).toBe(written);
        expectStatus(await post(id, "storage/expand", { storage_size_gb: 4 }), 202);
        await services.settled(id, "Running");
        await released(id, () => client.set("after", "1"));
      } finally {
        client.disconnect();
      }
      await services.delete(id);
    },
    longMs,
  );
});
