import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createQueuesUnderTest } from "./queues/queues-under-test.ts";
import { workerValueCases } from "./queues/worker-values.ts";

describe("queues of a service", () => {
  const fixture = createQueuesUnderTest();
  const { cli, claim, ack, leftIn } = fixture;
  let queues: string;

  beforeAll(async () => {
    await fixture.start();
    queues = fixture.path();
  });
  afterAll(fixture.remove);

  it("lose no acknowledged message when engine, agent and controller are killed", async () => {
    await cli("queues", "create", "orders", "hard", "--max-attempts", "100");
    const sent: number[] = [];
    const acked: number[] = [];
    let isFinished = false;
    const producer = (async () => {
      for (let n = 0; !isFinished || n < 50; n += 1) {
        const messages = [{ payload: { n } }];
        const headers = { "idempotency-key": `hard-${n}` };
        // A sender without a response repeats the request, and finds the existing message or creates it.
        await waitUntil(`message ${n} is taken`, async () => {
          const response = await fixture.platform.rest
            .post(`${queues}/hard/messages`, { messages }, { headers })
            .catch(() => undefined);
          return response?.status === 202;
        });
        sent.push(n);
      }
    })();
    const consumer = (async () => {
      // An ack whose response was lost is done and not in the set: the engine's state decides.
      for (let isEmpty = false; !isFinished || !isEmpty; ) {
        const claimed = await claim("hard", { max: 10, visibility_timeout_seconds: 3 }).catch(() => []);
        const settled = claimed.length === 0 ? undefined : await ack("hard", claimed).catch(() => undefined);
        for (const { receipt, payload } of claimed)
          if (settled?.done.includes(receipt) === true) acked.push((payload as { n: number }).n);
        isEmpty = isFinished && (await leftIn("hard").catch(() => 1)) === 0;
      }
    })();
    for (const victim of ["engine", "agent", "controller"] as const) {
      const before = sent.length;
      const { machines, controllers } = fixture.platform.processes();
      const pid = victim === "controller" ? controllers[0] : machines[0]?.[victim];
      if (pid === undefined) throw new Error(`there is no ${victim}`);
      killImmediately(pid);
      await waitUntil(`messages are taken again after the ${victim}'s end`, () => sent.length > before + 5);
    }
    isFinished = true;
    await Promise.all([producer, consumer]);
    expect(new Set(acked).size).toBe(acked.length);
    // An ack whose response was lost is not among them: each of the three kills may have had one.
    expect(sent.length - acked.length).toBeLessThanOrEqual(30);
    const { messages: dead } = (await fixture.platform.rest.get<{ messages: unknown[] }>(`${queues}/hard/dead`)).json;
    expect(dead).toEqual([]);
  }, 120_000);

  workerValueCases(fixture);
});
