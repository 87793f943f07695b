import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { type DrillJson, drilled } from "@holdfast/testing/platform/drills.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createBackupsUnderTest, longMs } from "./backups/backups-under-test.ts";

describe("a log that was written under settings that the plan has too little memory for", () => {
  const its = createBackupsUnderTest();
  const { pathOf, sql } = its;
  let platform: Platform;
  let services: Services;
  let source: RunningService;
  const all = "SELECT i FROM noted ORDER BY i";

  beforeAll(async () => {
    await its.start({ HOLDFAST_IDLE_LOG_AFTER_S: "3" });
    ({ platform, services, source } = its);
  }, longMs);
  afterAll(its.remove, longMs);

  const path = (suffix: string) => `/managed-services/${source.service.id}${suffix}`;
  const wait = { withinMs: longMs, everyMs: 200, describe: () => services.describe(source.service.id) };
  const restorable = async () => (await services.get(source.service.id)).backups?.restorable ?? null;

  async function configure(parameters: Record<string, string | null>): Promise<void> {
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters }), 200);
    await services.settled(source.service.id, "Running");
    await services.verb(source.service.id, "restart");
  }

  async function resize(planName: string): Promise<void> {
    expectStatus(await platform.rest.post(path("/resize"), { plan_name: planName }), 202);
    await services.settled(source.service.id, "Running", longMs);
  }

  async function durable(): Promise<string> {
    const point = new Date().toISOString();
    await waitUntil("it is durable", async () => ((await restorable())?.to ?? "") > point, wait);
    return point;
  }

  async function rowsAt(point: string, name: string): Promise<readonly unknown[]> {
    const body = { restore_point: point, target_service_name: name };
    const { id } = expectStatus(await platform.rest.post<ServiceJson>(path("/backups/restore"), body), 202).json;
    await services.settled(id, "Running", longMs);
    return (await sql(await services.open(id), all)).map(({ i }) => i);
  }

  it(
    "is restored and drilled on the service's own plan",
    async () => {
      const { id } = source.service;
      await waitUntil("a base exists", async () => (await restorable()) !== null, wait);
      await sql(source, "CREATE TABLE noted AS SELECT 0 AS i");
      await resize("tier-2");
      await configure({ max_connections: "500", max_locks_per_transaction: "8000" });
      await sql(source, "INSERT INTO noted VALUES (1)");
      const raised = await durable();
      await configure({ max_connections: null, max_locks_per_transaction: null });
      await resize("tier-1");
      await sql(source, "INSERT INTO noted VALUES (2)");
      const lowered = await durable();
      const requested = expectStatus(await platform.rest.post<DrillJson>(pathOf(id, "/drill")), 202).json;
      expect(await rowsAt(raised, "orders-raised")).toEqual([0, 1]);
      expect(await rowsAt(lowered, "orders-lowered")).toEqual([0, 1, 2]);
      expect(await drilled(platform, id, requested.id)).toMatchObject({ status: "completed", error: null });
    },
    longMs,
  );
});
