import { agentUidOf } from "@holdfast/compute/local/machine-number.ts";
import { layoutOf } from "@holdfast/compute/local/machine-paths.ts";
import { readRecord } from "@holdfast/compute/local/machine-record.ts";
import { listeners } from "@holdfast/testing/machines/incus-machines.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import type { Fault } from "./failures.ts";
import { afterAll, beforeAll, describe, it } from "vitest";
import { startQueueWorkload } from "@holdfast/testing/api/queue-workload.ts";
import { finalCases, createFailoverUnderTest } from "./failover-under-test.ts";
import { metricsByRoleCases } from "./metrics-by-role.ts";
import { cutUserLinks, cutsUnavailable } from "@holdfast/testing/network/uid-network-cuts.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

const why = cutsUnavailable === undefined ? "" : ` (skipped: it takes ${cutsUnavailable})`;

/**
 * Cases of a service without a replica. An asynchronous failover may lose rows, so tests that count rows run before
 * these.
 */
export function failingPrimaryCases(fixture: ReplicationUnderTest): void {
  describe("a primary that fails", () => {
    const failover = createFailoverUnderTest(fixture);
    const { failsOver, survivedFaultCases: outlivedCases, pauseMachine } = failover.failures;
    beforeAll(failover.begin);
    afterAll(failover.end);

    it("fails over while its machine is paused, and loses at most its queues' last messages", async () => {
      const queue = await startQueueWorkload(fixture.platform, fixture.main.service.id, "asynchronous");
      await failsOver("machine paused", pauseMachine);
      await queue.check({ mayLoseLast: true });
    });

    metricsByRoleCases(fixture, "after an automatic failover");

    it.skipIf(cutsUnavailable !== undefined)(
      `fails over when its network is cut, while clients still reach it${why}`,
      async () => {
        const service = () => fixture.services.get(fixture.main.service.id);
        await failsOver("network cut", cutNetworkOf(fixture.platform, service));
      },
    );

    outlivedCases(() => fixture.writer);

    finalCases(fixture, failover);
  });
}

/**
 * Cuts a machine of the service off from its controllers and from its other members, while clients reach its engine:
 * their writes would reveal two primaries.
 */
function cutNetworkOf(platform: Pick<Platform, "directory">, service: () => Promise<ServiceJson>): Fault {
  async function machine(id: string) {
    const record = await readRecord(layoutOf(platform.directory).machine(id).record);
    if (record === undefined || record.uid === null) throw new Error(`machine ${id} has no separate users`);
    return { address: record.address, agent: agentUidOf(record.uid), users: [record.uid, agentUidOf(record.uid)] };
  }

  return async (machineId) => {
    const cut = await machine(machineId);
    const { nodes } = await service();
    const others = await Promise.all(nodes.filter(({ id }) => id !== machineId).map(({ id }) => machine(id)));
    const pairs = others.flatMap((other) => [
      ...other.users.map((uid) => [uid, cut.address] as const),
      ...cut.users.map((uid) => [uid, other.address] as const),
    ]);
    return cutUserLinks(listeners(platform).number, { uids: [cut.agent], pairs });
  };
}
