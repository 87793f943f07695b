import { statfs } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeRows } from "../faults/acknowledged-writer.ts";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { OperationJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";

const gib = 1024 ** 3;
const longMs = 240_000;

describe("a service's size", () => {
  let platform: Platform;
  let services: Services;
  let running: RunningService;
  let id: string;
  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    running = await services.createRunning("growing");
    id = running.service.id;
  }, longMs);
  afterAll(() => platform?.remove());

  const query = <R extends Record<string, unknown>>(sql: string) =>
    queryOnce<R>(platform, running.connection, running, sql);
  const post = (path: string, body: object) => platform.rest.post<ServiceJson>(`/managed-services/${id}/${path}`, body);
  const machine = () => platform.processes().machines.find((each) => each.id === running.service.nodes[0]?.id);
  const lastOf = async (type: string): Promise<OperationJson | undefined> =>
    (await services.operations(id)).find((operation) => operation.type === type);
  /** Size of the machine's data disk, as mounted in the machine. */
  async function diskBytes(): Promise<number> {
    const { blocks, bsize } = await statfs(pathInside(machine()?.engine, "/data"));
    return blocks * bsize;
  }
  async function startedAt(): Promise<string> {
    const [row] = await query<{ at: Date }>("SELECT pg_postmaster_start_time() AS at");
    return String(row?.at.toISOString());
  }

  it(
    "grows its storage without a restart, and reports it once the file system has it",
    async () => {
      const before = await startedAt();
      const accepted = expectStatus(await post("storage/expand", { storage_size_gb: 3 }), 202).json;
      expect(accepted).toMatchObject({ storage_size_gb: 3, status: "Running", operation: { type: "expand" } });
      const repeated = expectStatus(await post("storage/expand", { storage_size_gb: 3 }), 202).json;
      expect(repeated.operation?.id ?? accepted.operation?.id).toBe(accepted.operation?.id);
      await services.settled(id, "Running");
      expect(await lastOf("expand")).toMatchObject({ status: "completed", error: null });
      // A shared disk is never smaller.
      expect(await diskBytes()).toBeGreaterThan(2.8 * gib);
      expect(await startedAt()).toBe(before);
      expect(await query("SHOW max_wal_size")).toEqual([{ max_wal_size: "307MB" }]);
    },
    longMs,
  );

  it(
    "changes its plan with one restart and loses nothing, with any process killed",
    async () => {
      const stop = new AbortController();
      const writer = await writeRows(platform, running, stop.signal);
      try {
        expectStatus(await post("resize", { plan_name: "tier-2" }), 202);
        for (const pid of platform.processes().controllers) killImmediately(pid);
        const settled = await waitUntil(
          "the plan is applied",
          async () => {
            const { json } = await platform.rest.insist<ServiceJson>("GET", `/managed-services/${id}`);
            return json.operation === null ? json : undefined;
          },
          { describe: () => services.describe(id) },
        );
        expect(settled).toMatchObject({ status: "Running", plan_name: "tier-2" });
        expect(await query("SHOW shared_buffers")).toEqual([{ shared_buffers: "1GB" }]);
        const patch = { plan_name: "tier-1", storage_size_gb: 4 };
        const both = expectStatus(await platform.rest.patch<ServiceJson>(`/managed-services/${id}`, patch), 202);
        expect(both.json.operation).toMatchObject({ type: "resize" });
        killImmediately(machine()?.agent ?? 0);
        expect(await services.settled(id, "Running")).toMatchObject(patch);
        expect(await lastOf("resize")).toMatchObject({ status: "completed" });
        expect(await query("SHOW shared_buffers")).toEqual([{ shared_buffers: "512MB" }]);
        // The store has an event together with its change; the outbox then copies it into the history.
        const events = await waitUntil("both changes have events", async () => {
          const response = await platform.rest.get<{ events: { event_type: string; data: object }[] }>(
            `/managed-services/${id}/events?type=service.resized`,
          );
          return response.json.events.length > 1 && response.json.events;
        });
        expect(events.at(-1)?.data).toMatchObject({ ...patch, from_plan_name: "tier-2" });
      } finally {
        stop.abort();
        await writer.done;
      }
      expect(await writer.missing()).toEqual([]);
    },
    longMs,
  );

  it(
    "is changed while the service is stopped, and applied when it starts",
    async () => {
      await services.verb(id, "stop");
      expectStatus(await post("storage/expand", { storage_size_gb: 5 }), 202);
      await services.settled(id, "Stopped");
      expect(await lastOf("expand")).toMatchObject({ status: "completed" });
      await services.verb(id, "start");
      expect(await diskBytes()).toBeGreaterThan(4.8 * gib);
    },
    longMs,
  );

  it.each<[string, object, number, string]>([
    ["storage/expand", { storage_size_gb: 5 }, 422, "not_possible"],
    ["storage/expand", { storage_size_gb: 1 }, 422, "not_possible"],
    ["storage/expand", { storage_size_gb: 0 }, 400, "invalid_request"],
    ["storage/expand", { storage_size_gb: 16_000 }, 422, "not_possible"],
    ["resize", { plan_name: "tier-1" }, 422, "not_possible"],
    ["resize", { plan_name: "tier-3" }, 400, "invalid_request"],
  ])("rejects %s %j with %i %s", async (path, body, status, code) => {
    const refused = await platform.rest.post<ProblemJson>(`/managed-services/${id}/${path}`, body);
    expect(expectStatus(refused, status).json.code).toBe(code);
    expect(await services.get(id)).toMatchObject({ operation: null, plan_name: "tier-1", storage_size_gb: 5 });
  });

  it("is no change where a PATCH has the current value", async () => {
    const same = { plan_name: "tier-1", storage_size_gb: 5 };
    expectStatus(await platform.rest.patch(`/managed-services/${id}`, same), 200);
    const smaller = await platform.rest.patch<ProblemJson>(`/managed-services/${id}`, { storage_size_gb: 4 });
    expect(expectStatus(smaller, 422).json.code).toBe("not_possible");
  });
});
