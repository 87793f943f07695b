import { describe, expect, it } from "vitest";
import { startQueueWorkload } from "@holdfast/testing/api/queue-workload.ts";
import { type OperationJson, type ProblemJson, withPrimary } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { metricsByRoleCases } from "./metrics-by-role.ts";
import type { ReplicationUnderTest } from "./replication-under-test.ts";

export function switchoverCases(fixture: ReplicationUnderTest): void {
  const rolesNow = async () => {
    const { nodes, primary_node_id: primary, term } = withPrimary(await fixture.services.get(fixture.main.service.id));
    const replica = nodes.find(({ role }) => role === "replica")?.id ?? "";
    return { primary, replica, term };
  };

  async function failOver(): Promise<void> {
    const { primary, replica, term } = await rolesNow();
    const response = await fixture.platform.rest.post<OperationJson>(fixture.path(`/nodes/${replica}/failover`), {});
    expect(expectStatus(response, 202).json).toMatchObject({ type: "failover" });
    await fixture.services.settled(fixture.main.service.id, "Running");
    const operation = await fixture.platform.rest.get<OperationJson>(`/operations/${response.json.id}`);
    expect(operation.json).toMatchObject({ status: "completed", error: null });
    expect(await rolesNow()).toEqual({ primary: replica, replica: primary, term: term + 1 });
    const before = fixture.writer.acknowledged;
    await waitUntil("writes continue", async () => fixture.writer.acknowledged > before + 5);
    await waitUntil("the old primary follows", async () => {
      return (await fixture.statusOf(primary)).sync_state === "streaming";
    });
  }

  describe("a failover to a chosen replica", () => {
    it("is rejected for the primary", async () => {
      const { primary } = await rolesNow();
      const response = await fixture.platform.rest.post<ProblemJson>(fixture.path(`/nodes/${primary}/failover`), {});
      expectStatus(response, 409);
    });

    metricsByRoleCases(fixture, "before");
    it("promotes the replica, and the old primary becomes its replica", failOver);
    metricsByRoleCases(fixture, "after");

    it("switches back, with queues in use", async () => {
      const queue = await startQueueWorkload(fixture.platform, fixture.main.service.id, "carried");
      await failOver();
      await queue.check();
    });

    it("allows the removal of the replica, which leaves one node as before", async () => {
      const { replica } = await rolesNow();
      expectStatus(await fixture.platform.rest.delete(fixture.path(`/nodes/${replica}`)), 202);
      const settled = await fixture.services.settled(fixture.main.service.id, "Running");
      expect(settled.nodes).toHaveLength(1);
      expect(settled.replication).toBeNull();
      expect((await fixture.platform.rest.get(fixture.path(`/nodes/${replica}`))).status).toBe(404);
    });
  });
}
