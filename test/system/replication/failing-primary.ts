import { afterAll, beforeAll, describe, it } from "vitest";
import { startQueueWorkload } from "../../support/api/queue-workload.ts";
import { cutNetworkOf } from "./cut-network.ts";
import { allEndedCases, createFailoverUnderTest } from "./failover-under-test.ts";
import { metricsByRoleCases } from "./metrics-by-role.ts";
import { uncuttable } from "../../support/network/uid-network-cuts.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

const why = uncuttable === undefined ? "" : ` (skipped: it takes ${uncuttable})`;

/** Of a service without a replica. An asynchronous failover may lose rows: tests that count them come before. */
export function failingPrimaryCases(its: ReplicationUnderTest): void {
  describe("a primary that fails", () => {
    const failover = createFailoverUnderTest(its);
    const { failsOver, outlivedCases, pauseMachine } = failover.failures;
    beforeAll(failover.begin);
    afterAll(failover.end);

    it("fails over while its whole machine stands still, and loses the last messages of its queues at most", async () => {
      const queue = await startQueueWorkload(its.platform, its.main.service.id, "asynchronous");
      await failsOver("machine paused", pauseMachine);
      await queue.check({ mayLoseLast: true });
    });

    metricsByRoleCases(its, "after a failover that nobody asked for");

    it.skipIf(uncuttable !== undefined)(
      `fails over when its network is cut, while clients still reach it${why}`,
      async () => {
        const service = () => its.services.get(its.main.service.id);
        await failsOver("network cut", cutNetworkOf(its.platform, service));
      },
    );

    outlivedCases(() => its.writer);

    allEndedCases(its, failover);
  });
}
