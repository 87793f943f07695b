import { expect, it } from "vitest";
import type { Rest } from "@holdfast/testing/api/rest.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { ClaimedJson, QueuesUnderTest, TaskIdJson } from "./queues-under-test.ts";

const requests = 12;
const inEach = 5;

/** Cases of two controllers that deliver messages of one queue concurrently, until one is killed. */
export function twoControllersCases(fixture: QueuesUnderTest): void {
  it("are one queue at two controllers, one of which is killed", async () => {
    await fixture.create("shared", { visibility_timeout_seconds: 5, max_attempts: 20 });
    const path = fixture.path("/shared/messages");
    const second = await startSecondController(fixture.platform);
    const { rest: first } = fixture.platform;
    const claimAt = async (rest: Rest) =>
      expectStatus(await rest.post<{ messages: ClaimedJson[] }>(`${path}/claim`, { max: inEach }), 200).json.messages;
    try {
      // The same request at both is one request.
      for (let n = 0; n < requests; n += 1) {
        const messages = Array.from({ length: inEach }, (_, at) => ({ payload: { n: n * inEach + at } }));
        const headers = { "idempotency-key": `shared-${n}` };
        const enqueue = (rest: Rest) => rest.post<TaskIdJson>(path, { messages }, { headers });
        const [firstResponse, secondResponse] = await Promise.all([enqueue(first), enqueue(second.rest)]);
        expect(expectStatus(secondResponse, 202).json.task_id).toBe(expectStatus(firstResponse, 202).json.task_id);
      }
      const acked: number[] = [];
      /** Claims at one controller and acks at the other, until the queue is empty or a controller has ended. */
      const work = async (claims: Rest, acks: Rest) => {
        for (let claimed = await claimAt(claims); claimed.length > 0; claimed = await claimAt(claims)) {
          const ids = new Map(claimed.map(({ receipt, id }) => [receipt, id]));
          const receipts = claimed.map(({ receipt }) => ({ receipt }));
          const { done } = await fixture.settle("shared", "ack", receipts, acks);
          acked.push(...done.map((receipt) => ids.get(receipt) ?? 0));
        }
      };
      // Callers of the killed controller get no response from it.
      const working = Promise.allSettled([work(first, second.rest), work(second.rest, first)]);
      await waitUntil("some are done", () => acked.length >= inEach * 2);
      killImmediately(second.pid);
      await working;
      await waitUntil("nothing remains", async () => {
        await work(first, first);
        return (await fixture.leftIn("shared")) === 0;
      });
      // A response that was lost with its controller may have been an acknowledgment.
      expect(new Set(acked).size).toBe(acked.length);
      expect(acked.length).toBeGreaterThanOrEqual((requests - 2) * inEach);
      expect(acked.length).toBeLessThanOrEqual(requests * inEach);
    } finally {
      await second.stop();
    }
  });

  it("have metrics that alert rules watch", async () => {
    await fixture.create("watched");
    const rules = `/managed-services/${fixture.orders.service.id}/alerts/rules`;
    const rule = { metric: "queue_ready_messages", condition: "gt", threshold: 100, duration_minutes: 0 };
    const { id } = expectStatus(await fixture.platform.rest.post<{ id: string }>(rules, rule), 201).json;
    const stateIs = (state: string) => async () =>
      expectStatus(await fixture.platform.rest.get<{ state: string }>(`${rules}/${id}`), 200).json.state === state;
    await waitUntil("it has figures", stateIs("ok"));
    // Other queues of the service count too.
    const many = Array.from({ length: 100 }, (_, n) => ({ n }));
    for (let n = 0; n < 2; n += 1) await fixture.enqueue("watched", many);
    await waitUntil("it fires", stateIs("firing"));
    expectStatus(await fixture.platform.rest.post(fixture.path("/watched/purge"), {}), 202);
    await waitUntil("it is resolved", stateIs("ok"));
    expectStatus(await fixture.platform.rest.delete(`${rules}/${id}`), 204);
  });
}
