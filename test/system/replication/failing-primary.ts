import { afterAll, beforeAll, describe, it } from "vitest";
import { queueMeanwhile } from "../../support/api/queue-meanwhile.ts";
import { allEndedCases, createFailoverUnderTest } from "./failover-under-test.ts";
import { figuresOfRolesCases } from "./figures-of-roles.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

/** Of a service without a replica. An asynchronous failover may lose rows: whoever counts them does so before. */
export function failingPrimaryCases(its: ReplicationUnderTest): void {
  describe("a primary that fails", () => {
    const failover = createFailoverUnderTest(its);
    const { failsOver, outlivedCases, pauseMachine } = failover.failures;
    beforeAll(failover.begin);
    afterAll(failover.end);

    it("fails over while its whole machine stands still, and loses the last messages of its queues at most", async () => {
      const queue = await queueMeanwhile(its.platform, its.main.service.id, "asynchronous");
      await failsOver("machine paused", pauseMachine);
      await queue.check({ mayLoseLast: true });
    });

    figuresOfRolesCases(its, "after a failover that nobody asked for");

    outlivedCases(() => its.writer);

    allEndedCases(its, failover);
  });
}
