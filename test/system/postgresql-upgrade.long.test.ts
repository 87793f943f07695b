import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AcknowledgedWriter, writeRows } from "../faults/acknowledged-writer.ts";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const longMs = 300_000;

interface UpgradeJson {
  readonly findings: readonly { readonly code: string; readonly blocking: boolean; readonly message: string }[];
  readonly operation: { readonly id: string } | null;
}

/** Enabled by `npm run faults -- --upgrades`. */
const isEnabled = process.env["HOLDFAST_TEST_UPGRADES"] === "1";
const missing = await requireRecipes(import.meta.filename, "sid");
const skipped = missing === undefined ? "" : ` (skipped: ${missing})`;

describe.skipIf(missing !== undefined)(`a PostgreSQL that is upgraded to another version${skipped}`, () => {
  const writing = new AbortController();
  let platform: Platform;
  let services: Services;
  let orders: RunningService;
  let writer: AcknowledgedWriter;
  /** A time before the upgrade, and the last row that was acknowledged before it. */
  let before: { readonly at: number; readonly id: number };

  beforeAll(async () => {
    platform = await startPlatform({
      environment: { HOLDFAST_FIRST_BACKUP_AFTER_S: "1", HOLDFAST_IDLE_LOG_AFTER_S: "3" },
    });
    services = createServices(platform);
    orders = await services.createRunning("orders", { version: "17", allowed_cidrs: ["127.0.0.0/8"] });
    writer = await writeRows(platform, orders, writing.signal);
  }, longMs);
  afterAll(async () => {
    writing.abort();
    await platform?.remove();
  }, longMs);

  const requestUpgrade = (body: object, { service: { id } } = orders) =>
    platform.rest.post<UpgradeJson>(`/managed-services/${id}/upgrade`, body);
  const lastOf = async ({ service: { id } } = orders) =>
    (await services.operations(id)).find(({ type }) => type === "upgrade");
  const blocking = ({ findings }: UpgradeJson) => findings.flatMap((each) => (each.blocking ? [each.code] : []));
  const restorable = async () => (await services.get(orders.service.id)).backups?.restorable ?? null;

  async function withClient<T>(of: RunningService, work: (client: Client) => Promise<T>, database = "defaultdb") {
    const connection = { ...of.connection, database };
    const client = await openPostgresql(platform, connection, { password: of.password });
    try {
      return await work(client);
    } finally {
      await client.end();
    }
  }
  const queues = (rest = "") => `/managed-services/${orders.service.id}/queues${rest}`;
  const versionOf = (of: RunningService) =>
    withClient(
      of,
      async (client) =>
        (await client.query<{ server_version: string }>("SHOW server_version")).rows[0]?.server_version.split(".")[0],
    );

  it(
    "lists its obstacles, and changes nothing",
    async () => {
      const { id } = orders.service;
      await withClient(orders, async (client) => {
        await client.query("CREATE EXTENSION hstore");
        await client.query("CREATE TABLE kept AS SELECT 'a=>1'::hstore AS pairs");
        await client.query("CREATE DATABASE second");
        await client.query("CREATE TABLE named (f regproc)");
      });
      await withClient(orders, (client) => client.query("CREATE TABLE elsewhere AS SELECT 7 AS n"), "second");
      expectStatus(await platform.rest.post(queues(), { name: "mail" }), 201);
      const isActive = async () => (await platform.rest.get(queues("/mail"))).json["status"] === "Active";
      await waitUntil("the queue is active", isActive);
      expectStatus(await platform.rest.post(queues("/mail/messages"), { messages: [{ payload: { n: 5 } }] }), 202);
      await waitUntil("a base exists, with the log after it", async () => (await restorable()) !== null, {
        withinMs: longMs,
        describe: () => services.describe(id),
      });
      const { json } = expectStatus(await requestUpgrade({ version: "18", check_only: true }), 200);
      expect(blocking(json)).toEqual(["column_types"]);
      expectStatus(await requestUpgrade({ version: "18" }), 422);
      await withClient(orders, (client) => client.query("DROP TABLE named"));
      const { json: clear } = expectStatus(await requestUpgrade({ version: "18", check_only: true }), 200);
      expect(blocking(clear)).toEqual([]);
      expect(clear.findings.map(({ code }) => code)).toContain("downtime");
      expect(await services.get(id)).toMatchObject({ version: "17", operation: null });
    },
    longMs,
  );

  it.skipIf(!isEnabled)(
    "is rolled back when its data cannot be upgraded",
    async () => {
      // A column that 18 does not have.
      await withClient(orders, (client) => client.query("CREATE VIEW old_view AS SELECT wal_write FROM pg_stat_wal"));
      expectStatus(await requestUpgrade({ version: "18" }), 202);
      const after = await services.settled(orders.service.id, "Running", longMs);
      const operation = await lastOf();
      expect(operation).toMatchObject({ status: "failed", error: { code: "rolled_back_engine_failed" } });
      expect(operation?.error?.message).toContain("wal_write");
      expect([after.version, await versionOf(orders)]).toEqual(["17", "17"]);
      await withClient(orders, (client) => client.query("DROP VIEW old_view"));
      const { acknowledged } = writer;
      await waitUntil("writes continue", () => writer.acknowledged > acknowledged + 5);
    },
    longMs,
  );

  it(
    "has all its data under the other version, though the controllers are killed during the upgrade",
    async () => {
      const { id } = orders.service;
      before = { at: Date.now(), id: writer.last };
      const durable = new Date(before.at).toISOString();
      await waitUntil("the log until then is stored", async () => ((await restorable())?.to ?? "") > durable, {
        withinMs: longMs,
        describe: () => services.describe(id),
      });
      expectStatus(await requestUpgrade({ version: "18" }), 202);
      await waitUntil("the service is Upgrading", async () => (await services.get(id)).status === "Upgrading");
      for (const pid of platform.processes().controllers) killImmediately(pid);
      await waitUntil(
        "the upgrade is over",
        async () => {
          const found = await platform.rest.insist<ServiceJson>("GET", `/managed-services/${id}`);
          return found.json.operation === null;
        },
        { withinMs: longMs, describe: () => services.describe(id) },
      );
      expect(await lastOf()).toMatchObject({ status: "completed", error: null });
      expect((await services.settled(id, "Running", longMs)).version).toBe("18");
      expect(await versionOf(orders)).toBe("18");
      const { acknowledged } = writer;
      await waitUntil("writes continue", () => writer.acknowledged > acknowledged + 5);
      expect(
        await withClient(orders, async (client) => (await client.query("SELECT pairs -> 'a' AS a FROM kept")).rows),
      ).toEqual([{ a: "1" }]);
      expect(
        await withClient(orders, async (client) => (await client.query("SELECT n FROM elsewhere")).rows, "second"),
      ).toEqual([{ n: 7 }]);
      const claimed = await platform.rest.post<{ messages: { payload: unknown }[] }>(
        queues("/mail/messages/claim"),
        {},
      );
      expect(expectStatus(claimed, 200).json.messages).toMatchObject([{ payload: { n: 5 } }]);
      expectStatus(await requestUpgrade({ version: "17" }), 422);
    },
    longMs,
  );

  it.skipIf(!isEnabled)(
    "has a backup of the new version, and a restore from before has the old version",
    async () => {
      const { id } = orders.service;
      const after = new Date().toISOString();
      await waitUntil("the log behind a new base is stored", async () => ((await restorable())?.to ?? "") > after, {
        withinMs: longMs,
        everyMs: 500,
        describe: () => services.describe(id),
      });
      const body = { restore_point: new Date(before.at).toISOString(), target_service_name: "then" };
      const response = await platform.rest.post<ServiceJson>(`/managed-services/${id}/backups/restore`, body);
      const copy = await services.settled(expectStatus(response, 202).json.id, "Running", longMs);
      expect(copy.version).toBe("17");
      const earlier = await services.open(copy.id);
      expect(await versionOf(earlier)).toBe("17");
      const ids = await withClient(
        earlier,
        async (client) => (await client.query<{ id: string }>("SELECT max(id) AS id FROM ledger")).rows,
      );
      expect(Number(ids[0]?.id)).toBeGreaterThanOrEqual(before.id);
    },
    longMs,
  );

  it.skipIf(!isEnabled)(
    "is upgraded also after a restore, with several parallel jobs",
    async () => {
      const path = `/managed-services/${orders.service.id}/backups/restore`;
      // pg_upgrade has as many jobs as the plan has vCPUs.
      const larger = { target_service_name: "larger", plan_name: "tier-2" };
      const body = { restore_point: new Date(before.at).toISOString(), ...larger };
      const response = await platform.rest.post<ServiceJson>(path, body);
      const { id } = await services.settled(expectStatus(response, 202).json.id, "Running", longMs);
      await waitUntil("it has a backup", async () => (await services.get(id)).backups?.restorable != null, {
        withinMs: longMs,
        describe: () => services.describe(id),
      });
      expectStatus(await requestUpgrade({ version: "18" }, { service: await services.get(id) } as RunningService), 202);
      await services.settled(id, "Running", longMs);
      const operation = (await services.operations(id)).find(({ type }) => type === "upgrade");
      expect(operation).toMatchObject({ status: "completed", error: null });
      const upgraded = await services.open(id);
      expect(await versionOf(upgraded)).toBe("18");
      const sql = "SELECT pairs -> 'a' AS a FROM kept";
      expect(await withClient(upgraded, async (client) => (await client.query(sql)).rows)).toEqual([{ a: "1" }]);
    },
    2 * longMs,
  );

  it("has lost no acknowledged row", async () => {
    writing.abort();
    await writer.done;
    expect(await writer.missing()).toEqual([]);
  });
});
