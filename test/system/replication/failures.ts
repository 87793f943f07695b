import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { ReplicationStatus } from "@holdfast/sdk/index.ts";
import type { AcknowledgedWriter } from "../../faults/acknowledged-writer.ts";
import { isHealthy, type OperationJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { isFailoverCandidate } from "@holdfast/testing/platform/failover-candidate.ts";
import { findBelow, killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { NodeWriters } from "./node-writers.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

/** Operations on a service of several nodes while its primary fails; of any engine. */
export type Failing = Pick<ReplicationUnderTest, "services" | "statusOf"> & {
  readonly platform: Pick<ReplicationUnderTest["platform"], "directory" | "processes">;
  readonly main: Pick<ReplicationUnderTest["main"], "service">;
};

/** Repairs a fault. */
export type Repair = () => Promise<void> | void;

/** Breaks a machine; the returned function repairs it. */
export type Fault = (machineId: string) => Repair | void | Promise<Repair>;

/** A service on its platform. */
export function failing(
  { platform, services }: Pick<ReplicationUnderTest, "platform" | "services">,
  main: Failing["main"],
): Failing {
  return {
    platform,
    services,
    main,
    async statusOf(nodeId) {
      const path = `/managed-services/${main.service.id}/nodes/${nodeId}/replication-status`;
      return expectStatus(await platform.rest.get<ReplicationStatus>(path), 200).json;
    },
  };
}

/** Failures of the primary of one service. `nodeWriters`: writes to all of its nodes, once those began. */
export function createFailures(fixture: Failing, nodeWriters: () => NodeWriters | undefined, figures: string[]) {
  const service = () => fixture.services.get(fixture.main.service.id);

  async function roles() {
    const { nodes, primary_node_id: primary, term } = withPrimary(await service());
    const replica = nodes.find(({ role }) => role === "replica");
    const machine = nodes.find(({ id }) => id === primary);
    return {
      primary,
      replica: replica?.id ?? "",
      term,
      newHost: replica?.hostname ?? "",
      oldHost: machine?.hostname ?? "",
    };
  }

  function processesOf(machineId: string) {
    const machine = fixture.platform.processes().machines.find(({ id }) => id === machineId);
    if (machine === undefined) throw new Error(`nothing of machine ${machineId} runs`);
    return machine;
  }

  /** Only a failover candidate can replace the primary. The roles change when an earlier fault is detected late. */
  async function untilCandidate(): Promise<void> {
    const isStreaming = async () => (await fixture.statusOf((await roles()).replica)).sync_state === "streaming";
    await waitUntil("the replica streams", isStreaming);
    await waitUntil("the service is settled", async () => {
      const operations = await fixture.services.operations(fixture.main.service.id);
      const isBusy = operations.some(({ status }) => status === "pending" || status === "running");
      return isHealthy((await service()).health) && !isBusy;
    });
    // The primary gets the candidacy by a later settings update.
    const isCandidate = async () =>
      isFailoverCandidate(fixture.platform.directory, fixture.main.service.id, (await roles()).primary);
    await waitUntil("the primary counts on its replica", isCandidate, {
      describe: async () => JSON.stringify(await service()),
    });
  }

  /**
   * Breaks the primary, and waits until its replica is the primary and it follows. `begin`: an additional
   * step of the test.
   */
  async function failsOver(name: string, fault: Fault, begin?: (replica: string) => Promise<void>): Promise<void> {
    await untilCandidate();
    const { primary, replica, term, newHost } = await roles();
    const atMs = performance.now();
    const repair = await fault(primary);
    try {
      await begin?.(replica);
      const firstMs = await waitUntil("the replica accepts writes", () => nodeWriters()?.firstAfter(newHost, atMs), {
        withinMs: 60_000,
        describe: async () => JSON.stringify(await service()),
      });
      figures.push(`${name}: first write at the new primary after ${Math.round(firstMs - atMs)} ms`);
    } finally {
      await repair?.();
    }
    await waitUntil("the service names its new primary", async () => (await roles()).primary === replica);
    const after = await service();
    expect(after).toMatchObject({ status: "Running", term: term + 1 });
    await waitUntil("the old primary follows", async () => {
      return (await fixture.statusOf(primary)).sync_state === "streaming";
    });
    await fixture.services.settled(fixture.main.service.id, "Running");
    const operations = await fixture.services.operations(fixture.main.service.id);
    expect(operations.find(({ type }) => type === "failover")).toMatchObject({
      status: "completed",
    } satisfies Partial<OperationJson>);
    expect(nodeWriters()?.overlaps()).toEqual([]);
  }

  /** Expects that exactly one node accepts writes again; that may be the failed primary. */
  async function recovers(name: string, fault: Fault): Promise<void> {
    await untilCandidate();
    const { primary, newHost, oldHost } = await roles();
    const atMs = performance.now();
    const repair = await fault(primary);
    // The outcome of a write in progress at the fault is unknown.
    const firstMs = await waitUntil(
      "a node accepts writes",
      () => {
        const times = [oldHost, newHost].flatMap((host) => nodeWriters()?.firstAfter(host, atMs + 100) ?? []);
        return times.length === 0 ? undefined : Math.min(...times);
      },
      { withinMs: 60_000, describe: async () => JSON.stringify(await service()) },
    );
    figures.push(`${name}: a write after ${Math.round(firstMs - atMs)} ms`);
    await repair?.();
    await waitUntil("both members are healthy", async () => {
      const states = await Promise.all((await service()).nodes.map(({ id }) => fixture.statusOf(id)));
      return states.every(({ connected }) => connected);
    });
    await fixture.services.settled(fixture.main.service.id, "Running");
    expect(nodeWriters()?.overlaps()).toEqual([]);
  }

  function pauseMachine(id: string): () => void {
    const { launcher } = processesOf(id);
    return stopAll([launcher, ...findBelow(launcher)]);
  }

  function pauseEngine(id: string): () => void {
    const { engine = 0 } = processesOf(id);
    return stopAll([engine, ...findBelow(engine)]);
  }

  /** Until it is repaired, it is killed as soon as it is started again. */
  function keepKilling(id: string): () => void {
    const kill = () => {
      const machine = fixture.platform.processes().machines.find((each) => each.id === id);
      if (machine !== undefined) killImmediately(machine.launcher);
    };
    kill();
    const timer = setInterval(kill, 100);
    return () => clearInterval(timer);
  }

  /** To be called in a suite: a short pause changes nothing, and killed processes are restarted. */
  function survivedFaultCases(writer: () => Pick<AcknowledgedWriter, "acknowledged">): void {
    it("is not affected by a pause of 3 s", async () => {
      await untilCandidate();
      const { primary, term } = await roles();
      const repair = pauseMachine(primary);
      // Time: the length of the pause.
      await sleep(3_000);
      repair();
      const { acknowledged } = writer();
      await waitUntil("writes continue", () => writer().acknowledged > acknowledged + 5);
      expect(await roles()).toMatchObject({ primary, term });
    });

    it("continues when its engine is killed", async () => {
      await recovers("engine killed", (id) => void killImmediately(processesOf(id).engine ?? 0));
    });

    it("continues when its agent is killed", async () => {
      await recovers("agent killed", (id) => void killImmediately(processesOf(id).agent ?? 0));
    });

    it("continues when its machine is killed", async () => {
      await recovers("machine killed", (id) => void killImmediately(processesOf(id).launcher));
    });
  }

  return {
    service,
    roles,
    processesOf,
    untilReplicaCounts: untilCandidate,
    failsOver,
    survivedFaultCases: survivedFaultCases,
    pauseMachine,
    pauseEngine,
    keepKilling,
  };
}

function stopAll(pids: readonly number[]): () => void {
  for (const pid of pids) killImmediately(pid, "SIGSTOP");
  return () => {
    for (const pid of pids) killImmediately(pid, "SIGCONT");
  };
}
