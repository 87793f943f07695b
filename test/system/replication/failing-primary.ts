import { startQueueWorkload } from "@holdfast/testing/api/queue-workload.ts";
import { cutsUnavailable } from "@holdfast/testing/network/uid-network-cuts.ts";
import { afterAll, beforeAll, describe, it } from "vitest";
import { cutMember } from "./cut-member.ts";
import { createFailoverUnderTest, finalCases } from "./failover-under-test.ts";
import { metricsByRoleCases } from "./metrics-by-role.ts";
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
        await failsOver("network cut", async (id) => cutMember(fixture.platform, await service(), id));
      },
    );

    outlivedCases(() => fixture.writer);

    finalCases(fixture, failover);
  });
}
