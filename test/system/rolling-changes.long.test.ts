import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AcknowledgedWriter, writeRows, writeValues } from "../faults/acknowledged-writer.ts";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { type OperationJson, type ServiceJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type EngineWatch, watchEngines } from "./replication/engine-watch.ts";

const longMs = 360_000;

describe("a PostgreSQL of three nodes that is changed during writes", () => {
  const writing = new AbortController();
  let platform: Platform;
  let services: Services;
  let orders: RunningService;
  let writer: AcknowledgedWriter;
  let id: string;
  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    orders = await services.createRunning("orders", { node_count: 3, replication_mode: "sync" });
    ({ id } = orders.service);
    writer = await writeRows(platform, orders, writing.signal);
  }, longMs);
  afterAll(async () => {
    writing.abort();
    await platform?.remove();
  });

  const path = (rest = "") => `/managed-services/${id}${rest}`;
  const now = () => services.get(id);
  const settled = () => services.settled(id, "Running", longMs);
  const engineOf = (nodeId: string) => platform.processes().machines.find((each) => each.id === nodeId)?.engine;
  const configure = async (parameters: Record<string, string>) =>
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters }), 200);
  /** Newest operation of a type: the API lists operations newest first. */
  const lastOf = async (type: string): Promise<OperationJson | undefined> =>
    (await services.operations(id)).find((operation) => operation.type === type);

  /** Values of each node's engine, queried by the node's own name. */
  async function valuesOf(parameter: string): Promise<unknown[]> {
    const { nodes } = await now();
    const { connection, password } = orders;
    return Promise.all(
      nodes.map(async ({ hostname: host }) => {
        const sql = `SHOW ${parameter}`;
        const [row] = await queryOnce<Record<string, unknown>>(platform, { ...connection, host }, { password }, sql);
        return row?.[parameter];
      }),
    );
  }

  async function writesContinue(): Promise<void> {
    const before = writer.acknowledged;
    await waitUntil("writes continue", async () => writer.acknowledged > before + 5);
  }

  /** Requests a change, kills every controller once the first engine is a new one, and waits for the end. */
  async function changed(path: string, body?: object): Promise<EngineWatch> {
    const { nodes } = await now();
    const engines = watchEngines(
      platform,
      nodes.map((node) => node.id),
    );
    try {
      expectStatus(await platform.rest.post<ServiceJson>(path, body), 202);
      await waitUntil("one engine is a new one", async () => engines.restarted().length > 0, {
        describe: () => services.describe(id),
      });
      for (const pid of platform.processes().controllers) killImmediately(pid);
      await waitUntil(
        "nothing is done any more",
        async () => (await platform.rest.insist<ServiceJson>("GET", `/managed-services/${id}`)).json.operation === null,
        { withinMs: longMs, describe: () => services.describe(id) },
      );
      await settled();
      return engines;
    } finally {
      engines.stop();
    }
  }

  it(
    "restarts its replicas one at a time and switches its primary over, though controllers are killed",
    async () => {
      const before = await now();
      const engines = await changed(path("/restart"));
      const after = await now();
      expect(await lastOf("restart")).toMatchObject({ status: "completed", error: null });
      expect(engines.restarted()).toHaveLength(3);
      expect(engines.mostDown()).toBeLessThanOrEqual(1);
      expect(engines.restarted().at(-1)).toBe(before.primary_node_id);
      expect(after).toMatchObject({ term: before.term + 1 });
      expect(after.primary_node_id).not.toBe(before.primary_node_id);
      await writesContinue();
    },
    longMs,
  );

  it(
    "raises parameters in which replicas must not be below their primary on the replicas first",
    async () => {
      const { primary_node_id: primary } = withPrimary(await now());
      await configure({ max_connections: "120", max_locks_per_transaction: "96" });
      const engines = await changed(path("/restart"));
      expect(await lastOf("restart")).toMatchObject({ status: "completed", error: null });
      expect(await valuesOf("max_connections")).toEqual(["120", "120", "120"]);
      expect(await valuesOf("max_locks_per_transaction")).toEqual(["96", "96", "96"]);
      expect(engines.mostDown()).toBeLessThanOrEqual(1);
      expect(engines.restarted().at(-1)).toBe(primary);
    },
    longMs,
  );

  it(
    "lowers a parameter on the primary first, which remains the primary",
    async () => {
      const { primary_node_id: primary, term } = withPrimary(await now());
      await configure({ max_connections: "60" });
      const engines = await changed(path("/restart"));
      expect(await lastOf("restart")).toMatchObject({ status: "completed", error: null });
      expect(await valuesOf("max_connections")).toEqual(["60", "60", "60"]);
      expect(engines.restarted()[0]).toBe(primary);
      expect(engines.mostDown()).toBeLessThanOrEqual(1);
      expect(await now()).toMatchObject({ primary_node_id: primary, term });
      await writesContinue();
    },
    longMs,
  );

  it(
    "restarts all nodes without a parameter that the engines reject, and names it in the operation",
    async () => {
      const { primary_node_id: primary, nodes } = withPrimary(await now());
      // A name that the API accepts, and the engine rejects.
      await configure({ TimeZone: "Nowhere/Never" });
      const engines = watchEngines(
        platform,
        nodes.map((node) => node.id),
      );
      expectStatus(await platform.rest.post(path("/restart")), 202);
      await settled();
      engines.stop();
      const operation = await lastOf("restart");
      expect(operation).toMatchObject({ status: "completed", error: null });
      const warned = nodes.map(({ hostname }) =>
        expect.stringMatching(
          new RegExp(`^${hostname} runs with the last accepted value of TimeZone, .*Nowhere/Never`),
        ),
      );
      expect(operation?.warnings).toEqual(expect.arrayContaining(warned));
      expect(engines.restarted()).toHaveLength(nodes.length);
      expect(engines.restarted().at(-1)).toBe(primary);
      await writesContinue();
      expectStatus(await platform.rest.patch(path("/configuration"), { parameters: { TimeZone: null } }), 200);
    },
    longMs,
  );

  it(
    "gets a larger plan and a smaller one, one node at a time",
    async () => {
      const { primary_node_id: first } = withPrimary(await now());
      const grown = await changed(path("/resize"), { plan_name: "tier-2" });
      expect(await lastOf("resize")).toMatchObject({ status: "completed", error: null });
      expect(await valuesOf("shared_buffers")).toEqual(["1GB", "1GB", "1GB"]);
      expect(grown.mostDown()).toBeLessThanOrEqual(1);
      expect((await now()).primary_node_id).not.toBe(first);
      const shrunk = await changed(path("/resize"), { plan_name: "tier-1" });
      expect(await lastOf("resize")).toMatchObject({ status: "completed", error: null });
      expect(await valuesOf("shared_buffers")).toEqual(["512MB", "512MB", "512MB"]);
      expect(shrunk.mostDown()).toBeLessThanOrEqual(1);
      expect(engineOf(first)).toBeDefined();
    },
    longMs,
  );

  it("has lost no acknowledged row", async () => {
    writing.abort();
    await writer.done;
    expect(await writer.missing()).toEqual([]);
  });

  it(
    "works equally for a Valkey of two nodes",
    async () => {
      const cache = await services.createRunning("cache", { database_type: "valkey", node_count: 2 });
      const ids = cache.service.nodes.map((node) => node.id);
      const stop = new AbortController();
      const values = writeValues(platform, cache, stop.signal);
      const engines = watchEngines(platform, ids);
      try {
        for (const [verb, body] of [["restart"], ["resize", { plan_name: "tier-2" }]] as const) {
          const { term } = await services.get(cache.service.id);
          expectStatus(await platform.rest.post(`/managed-services/${cache.service.id}/${verb}`, body), 202);
          await services.settled(cache.service.id, "Running", longMs);
          const last = (await services.operations(cache.service.id)).find(({ type }) => type === verb);
          expect(last).toMatchObject({ status: "completed", error: null });
          // A replica that has not caught up with its primary within 30 s lets it restart as the primary.
          expect((await services.get(cache.service.id)).term).toBe(term + 1);
        }
        expect(engines.restarted()).toHaveLength(2);
        const before = values.acknowledged;
        await waitUntil("writes continue", async () => values.acknowledged > before + 5);
      } finally {
        engines.stop();
        stop.abort();
        await values.done;
      }
    },
    longMs,
  );
});
