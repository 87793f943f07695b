import { expect } from "vitest";
import type { ReplicationStatus } from "@holdfast/sdk/index.ts";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import type { OperationJson } from "@holdfast/testing/api/service-json.ts";
import type { EtcdMembers } from "@holdfast/testing/platform/etcd-members.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { findBelow, killImmediately, type MachineProcesses } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, type RunningService } from "@holdfast/testing/platform/services.ts";
import type { Random } from "@holdfast/testing/random.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type NodeWriters, countersOf, rowsOf, startNodeWriters } from "../../system/replication/node-writers.ts";
import { createFailures, failing } from "../../system/replication/failures.ts";
import { type AcknowledgedWriter, flushOnWrite, writeRows, writeValues } from "../acknowledged-writer.ts";

export type FixtureKind = "async" | "sync" | "valkey";
type Failures = ReturnType<typeof createFailures>;
type Roles = Awaited<ReturnType<Failures["roles"]>>;

/** A service of two nodes with writers at its name, and at each of its nodes. */
export interface FailoverFixture extends Failures {
  readonly kind: FixtureKind;
  readonly platform: Platform;
  /** Members of etcd; only on a platform with three. */
  readonly etcd: EtcdMembers;
  readonly random: Random;
  readonly main: RunningService;
  readonly services: ReturnType<typeof createServices>;
  readonly writer: AcknowledgedWriter;
  readonly nodeWriters: NodeWriters;
  readonly byName: NodeWriters;
  statusOf(nodeId: string): Promise<ReplicationStatus>;
  /** Runs a statement on one node; only for PostgreSQL. */
  queryNode(nodeId: string, sql: string): Promise<Record<string, unknown>[]>;
  path(rest: string): string;
  /** Sends SIGSTOP to the processes; the returned function sends SIGCONT to those that still exist. */
  pause(pids: readonly (number | undefined)[]): () => void;
  /** Pids of a machine's agent, of its engine or of all its processes, with all child processes. */
  pidsOf(machineId: string, part: "agent" | "engine" | "machine"): readonly number[];
  /** Resolves when the node accepted a write that was sent after this time. */
  acceptsWrites(host: string, atMs: number): Promise<void>;
  /** Resolves when an operation `failover` that is not in `before` is at the step, or has ended. */
  reaches(step: string, before: ReadonlySet<string>): Promise<void>;
  /** Resolves when an operation `failover` that is not in `before` has ended. */
  ends(before: ReadonlySet<string>): Promise<void>;
  operationIds(): Promise<ReadonlySet<string>>;
  /** Resolves when both nodes have a role, no operation is in progress and the name accepts writes. */
  settles(before: Roles): Promise<Roles>;
  stop(): Promise<void>;
}

export interface FailoverFixtureOptions {
  readonly random: Random;
  /** Size of the data disks. */
  readonly storageGb?: number;
  readonly etcd?: EtcdMembers;
}

export async function createFailoverFixture(
  platform: Platform,
  kind: FixtureKind,
  { random, storageGb = 1, etcd }: FailoverFixtureOptions,
): Promise<FailoverFixture> {
  const services = createServices(platform);
  const main = await services.createRunning(`${kind}-matrix`, {
    node_count: 2,
    storage_size_gb: storageGb,
    // More sessions than the plan's default: many idle sessions are one of the faults.
    ...(kind === "valkey"
      ? { database_type: "valkey", parameters: flushOnWrite }
      : { replication_mode: kind, parameters: { max_connections: "1100" } }),
  });
  const { service, connection, password } = main;
  const stopping = new AbortController();
  const path = (rest: string) => `/managed-services/${service.id}${rest}`;
  const nodeWritersOf = (hosts: readonly string[]) =>
    startNodeWriters(hosts, kind === "valkey" ? countersOf(platform, main) : rowsOf(platform, main));

  await services.settled(service.id, "Running");
  if (kind !== "valkey") await queryOnce(platform, connection, { password }, "CREATE TABLE sides (host text)");
  const writer = await (kind === "valkey" ? writeValues : writeRows)(platform, main, stopping.signal);
  const nodeWriters = nodeWritersOf(service.nodes.map(({ hostname }) => hostname));
  const byName = nodeWritersOf([service.hostname]);
  const failingService = failing({ platform, services }, main);
  const { statusOf } = failingService;
  const failures = createFailures(failingService, () => nodeWriters, []);
  const { roles, processesOf } = failures;

  function pidsOf(machineId: string, part: "agent" | "engine" | "machine"): readonly number[] {
    const found: MachineProcesses = processesOf(machineId);
    const first = { agent: found.agent, engine: found.engine, machine: found.launcher }[part];
    // A missing process is still recovering from the previous fault.
    return first === undefined ? [] : [first, ...findBelow(first)];
  }

  async function untilFailover(
    what: string,
    isThere: (operation: OperationJson) => boolean,
    before: ReadonlySet<string>,
  ) {
    const check = async () =>
      (await services.operations(service.id)).some(
        (operation) =>
          operation.type === "failover" &&
          !before.has(operation.id) &&
          (operation.finished_at !== null || isThere(operation)),
      );
    await waitUntil(`the failover ${what}`, check, { everyMs: 10, describe: () => services.describe(service.id) });
  }

  return {
    ...failures,
    kind,
    platform,
    get etcd() {
      if (etcd === undefined) throw new Error("this platform has one member of etcd");
      return etcd;
    },
    random,
    main,
    services,
    writer,
    nodeWriters,
    byName,
    statusOf,
    path,
    pidsOf,
    async queryNode(nodeId, sql) {
      const { nodes } = await services.get(service.id);
      const host = nodes.find(({ id }) => id === nodeId)?.hostname ?? "";
      return queryOnce(platform, { ...connection, host }, { password }, sql);
    },
    pause(pids) {
      const running = pids.filter((pid) => pid !== undefined);
      for (const pid of running) killImmediately(pid, "SIGSTOP");
      return () => {
        for (const pid of running) killImmediately(pid, "SIGCONT");
      };
    },
    async acceptsWrites(host, atMs) {
      await waitUntil(`${host} accepts writes`, () => nodeWriters.firstAfter(host, atMs), {
        describe: () => services.describe(service.id),
      });
    },
    async operationIds() {
      return new Set((await services.operations(service.id)).map(({ id }) => id));
    },
    reaches: (step, before) => untilFailover(`is at ${step}`, (operation) => operation.step === step, before),
    ends: (before) => untilFailover("is over", () => false, before),
    async settles(before) {
      const describe = () => services.describe(service.id);
      const settledRoles = async () => {
        const { nodes, health } = await failures.service();
        const states = await Promise.all(nodes.map(({ id }) => statusOf(id)));
        return health.status === "healthy" && states.every(({ connected }) => connected);
      };
      await waitUntil("both members are healthy", settledRoles, { describe });
      await services.settled(service.id, "Running");
      const fromMs = performance.now();
      await waitUntil("the name accepts writes", () => byName.firstAfter(service.hostname, fromMs), { describe });
      const after = await roles();
      expect([before.primary, before.replica]).toContain(after.primary);
      return after;
    },
    async stop() {
      stopping.abort();
      await Promise.all([writer.done, nodeWriters.stop(), byName.stop()]);
    },
  };
}
