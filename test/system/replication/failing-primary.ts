import { startQueueWorkload } from "@holdfast/testing/api/queue-workload.ts";
import { afterAll, beforeAll, describe, it } from "vitest";
import { createFailoverUnderTest, finalCases } from "./failover-under-test.ts";
import { metricsByRoleCases } from "./metrics-by-role.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

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

    outlivedCases(() => fixture.writer);

    finalCases(fixture, failover);
  });
}
