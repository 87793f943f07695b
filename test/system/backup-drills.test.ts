import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Platform } from "../support/platform/platform.ts";
import { type DrillJson, drilled, noDrillMachines } from "../support/platform/drills.ts";
import { expectStatus, type RunningService, type Services } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";
import { createBackupsUnderTest, longMs } from "./backups/backups-under-test.ts";

describe("a moment of a service", () => {
  const its = createBackupsUnderTest();
  const { pathOf, sql, made } = its;
  let platform: Platform;
  let services: Services;
  let source: RunningService;
  beforeAll(async () => {
    await its.start({ HOLDFAST_IDLE_LOG_AFTER_S: "3" });
    ({ platform, services, source } = its);
  }, longMs);
  afterAll(its.remove, longMs);

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
});
