import { type AcknowledgedWriter, writeRows } from "../../faults/acknowledged-writer.ts";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus, type RunningService, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** One PostgreSQL whose commits wait for its replica, with a continuous writer. */
export interface SynchronousUnderTest {
  readonly orders: RunningService;
  readonly writer: AcknowledgedWriter;
  stopWriting(): Promise<void>;
  /** Path of the service, or below it. */
  path(rest?: string): string;
  /** Runs a statement on its primary. */
  query(sql: string): Promise<Record<string, unknown>[]>;
  now(): Promise<ServiceJson>;
  replicaNow(): Promise<ServiceJson["nodes"][number]>;
  writesContinue(): Promise<void>;
  /** Resolves when commits wait for the replica. */
  isProtected(): Promise<void>;
  setMode(mode: string): Promise<ServiceJson>;
  /** Begins to create it. */
  begin(): void;
  /** Resolves when it runs with its writer. */
  started(): Promise<void>;
  /** Ends its writer; the platform's owner ends the platform. */
  end(): void;
}

export function createSynchronousUnderTest(on: {
  readonly platform: Platform;
  readonly services: Services;
}): SynchronousUnderTest {
  const writing = new AbortController();
  let running: Pick<SynchronousUnderTest, "orders" | "writer"> | undefined;
  let starting = Promise.resolve();
  const run = async () => {
    const orders = await on.services.createRunning("orders", { node_count: 2, replication_mode: "sync" });
    running = { orders, writer: await writeRows(on.platform, orders, writing.signal) };
  };
  const started = () => {
    if (running === undefined) throw new Error("the PostgreSQL was not started");
    return running;
  };
  const fixture: SynchronousUnderTest = {
    get orders() {
      return started().orders;
    },
    get writer() {
      return started().writer;
    },
    async stopWriting() {
      writing.abort();
      await fixture.writer.done;
    },
    path: (rest = "") => `/managed-services/${fixture.orders.service.id}${rest}`,
    query: (sql) => queryOnce<Record<string, unknown>>(on.platform, fixture.orders.connection, fixture.orders, sql),
    now: () => on.services.get(fixture.orders.service.id),
    async replicaNow() {
      const replica = (await fixture.now()).nodes.find(({ role }) => role === "replica");
      if (replica === undefined) throw new Error("the service has no replica");
      return replica;
    },
    async writesContinue() {
      const before = fixture.writer.acknowledged;
      await waitUntil("writes continue", async () => fixture.writer.acknowledged > before + 5);
    },
    async isProtected() {
      await waitUntil("commits wait for the replica", async () => {
        const [row] = await fixture.query("SHOW synchronous_standby_names");
        return row?.["synchronous_standby_names"] !== "" && (await fixture.now()).replication?.healthy === true;
      });
    },
    setMode: async (mode) =>
      expectStatus(await on.platform.rest.patch<ServiceJson>(fixture.path(), { replication_mode: mode }), 200).json,
    begin() {
      starting = run();
      // A caller of `started` gets the error.
      starting.catch(() => undefined);
    },
    started: () => starting,
    end: () => writing.abort(),
  };
  return fixture;
}
