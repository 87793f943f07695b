import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { type DrillJson, drilled } from "@holdfast/testing/platform/drills.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createBackupsUnderTest, longMs } from "./backups/backups-under-test.ts";

describe("a log that was written under raised parameters and a larger plan", () => {
  const fixture = createBackupsUnderTest();
  const { pathOf, sql } = fixture;
  let platform: Platform;
  let services: Services;
  let source: RunningService;
  const rows = [{ i: 0 }, { i: 1 }, { i: 2 }];
  const all = "SELECT i FROM noted ORDER BY i";

  beforeAll(async () => {
    await fixture.start({ HOLDFAST_IDLE_LOG_AFTER_S: "3" });
    ({ platform, services, source } = fixture);
  }, longMs);
  afterAll(fixture.remove, longMs);

  const path = (suffix: string) => `/managed-services/${source.service.id}${suffix}`;
  const wait = { withinMs: longMs, everyMs: 200, describe: () => services.describe(source.service.id) };

  async function configure(parameters: Record<string, string | null>): Promise<void> {
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters }), 200);
    await services.settled(source.service.id, "Running");
    await services.verb(source.service.id, "restart");
  }

  async function durable(): Promise<string> {
    const point = new Date().toISOString();
    const to = async () => (await services.get(source.service.id)).backups?.restorable?.to ?? "";
    await waitUntil("it is durable", async () => (await to()) > point, wait);
    return point;
  }

  async function copyOf(kind: string, body: object): Promise<RunningService> {
    const { id } = expectStatus(await platform.rest.post<ServiceJson>(path(kind), body), 202).json;
    await services.settled(id, "Running", longMs);
    return services.open(id);
  }

  it(
    "is restored to now, tested by a drill, and forked",
    async () => {
      const { id } = source.service;
      const based = async () => (await services.get(id)).backups?.restorable ?? null;
      await waitUntil("a base exists", async () => (await based()) !== null, wait);
      await sql(source, "CREATE TABLE noted AS SELECT 0 AS i");
      await configure({ max_prepared_transactions: "10", max_locks_per_transaction: "128", max_connections: "500" });
      await sql(source, "INSERT INTO noted VALUES (1)");
      expectStatus(await platform.rest.post(path("/resize"), { plan_name: "tier-2" }), 202);
      await services.settled(id, "Running", longMs);
      await configure({ max_prepared_transactions: null, max_locks_per_transaction: null, max_connections: null });
      await sql(source, "INSERT INTO noted VALUES (2)");
      const point = await durable();
      const requested = expectStatus(await platform.rest.post<DrillJson>(pathOf(id, "/drill")), 202).json;
      const restored = await copyOf("/backups/restore", { restore_point: point, target_service_name: "orders-now" });
      expect(await sql(restored, all)).toEqual(rows);
      expect(await drilled(platform, id, requested.id)).toMatchObject({ status: "completed", error: null });
      const fork = await copyOf("/fork", { name: "orders-fork" });
      expect((await sql(fork, "SELECT 1 AS one"))[0]).toEqual({ one: 1 });
    },
    longMs,
  );

  it(
    "is restored and drilled on a plan that has too little memory for it",
    async () => {
      const { id } = source.service;
      const resize = async (planName: string) => {
        expectStatus(await platform.rest.post(path("/resize"), { plan_name: planName }), 202);
        await services.settled(id, "Running", longMs);
      };
      await resize("tier-4");
      await configure({ max_connections: "500", max_locks_per_transaction: "8000" });
      await sql(source, "INSERT INTO noted VALUES (3)");
      const raised = await durable();
      await configure({ max_connections: null, max_locks_per_transaction: null });
      await resize("tier-1");
      await sql(source, "INSERT INTO noted VALUES (4)");
      const lowered = await durable();
      const requested = expectStatus(await platform.rest.post<DrillJson>(pathOf(id, "/drill")), 202).json;
      const copyAt = (point: string, name: string) =>
        copyOf("/backups/restore", { restore_point: point, target_service_name: name });
      expect(await sql(await copyAt(raised, "orders-raised"), all)).toEqual([...rows, { i: 3 }]);
      expect(await sql(await copyAt(lowered, "orders-lowered"), all)).toEqual([...rows, { i: 3 }, { i: 4 }]);
      expect(await drilled(platform, id, requested.id)).toMatchObject({ status: "completed", error: null });
    },
    longMs,
  );
});
