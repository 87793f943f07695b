import { afterAll, beforeAll, expect, test } from "vitest";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "../../../../test/support/controller/test-fleet.ts";
import { helloOf, openSession } from "../../../../test/support/machines/test-agent.ts";
import { waitUntil } from "../../../../test/support/wait-until.ts";

let installation: TestInstallation;
let deciding: TestController;
let holder: TestController;

/** Rights are counted by the host's uptime, which goes in steps of 10 ms: a time between two looks is wrong by one at most. */
const stepMs = 10;
const signal = () => AbortSignal.timeout(60_000);
/** By what the store says the machine may be the primary of its service, whoever asks. */
const rightRules = { refusal: () => undefined, reached: async () => undefined };

beforeAll(async () => {
  installation = await newInstallation();
  deciding = await startController(installation, "deciding", { rightRules });
  holder = await startController(installation, "holder", { rightRules });
});
afterAll(() => installation?.close());

test("a right that another controller grants is granted no more once that has acknowledged it", async () => {
  const identity = await holder.newAgent("m-1");
  const agent = openSession(holder.dial(identity), helloOf("m-1"));
  await agent.expect("welcome");
  const ask = async (number: bigint, term: bigint) => {
    agent.say({ case: "rightRequest", value: { serviceId: "s", term, number, engineSilent: false } });
    return waitUntil("it is answered", () => {
      const answers = agent.received.flatMap(({ frame }) => (frame.case === "rightAnswer" ? frame.value : []));
      return answers.find((answer) => answer.number === number);
    });
  };
  const beganMs = performance.now();
  expect(await ask(1n, 1n)).toMatchObject({ granted: true });
  const revoke = () => deciding.fleet.revokeRight("m-1", 1, signal());
  const ungrantedForMs = await waitUntil("all have acknowledged it", revoke);
  // The other one granted it, and this one never did.
  expect(ungrantedForMs).toBeLessThanOrEqual(performance.now() - beganMs + stepMs);
  expect(await ask(2n, 1n)).toMatchObject({ granted: false, reason: "it is revoked" });
  expect(await ask(3n, 2n)).toMatchObject({ granted: true });
  agent.close();
});

test("a primary that falls silent, or whose engine does, is known to who does not hold its stream", async () => {
  const identity = await holder.newAgent("m-3");
  const agent = openSession(holder.dial(identity), helloOf("m-3"));
  await agent.expect("welcome");
  const ask = (number: bigint, engineSilent: boolean) =>
    agent.say({ case: "rightRequest", value: { serviceId: "s", term: 1n, number, engineSilent } });
  const told = () => deciding.fleet.silentElsewhere("m-3");
  let number = 1n;
  ask(number, true);
  await waitUntil("its engine's silence is told", () => told()?.isEngineSilent === true);
  await waitUntil("nothing is told of one that asks each time", () => {
    ask((number += 1n), false);
    return told() === undefined;
  });
  const beganMs = performance.now();
  await waitUntil("its own silence is told", () => (told()?.askedAgoMs ?? 0) > 3_000);
  expect(performance.now() - beganMs).toBeGreaterThan(2_900);
  expect(told()?.isEngineSilent).toBe(false);
  // The one that holds its stream hears it itself.
  expect(holder.fleet.silentElsewhere("m-3")).toBeUndefined();
  ask((number += 1n), true);
  await waitUntil("its engine's silence is told again", () => told()?.isEngineSilent === true);
  // The next stream of the agent begins anew, whatever the one before had said.
  const next = openSession(holder.dial(identity), helloOf("m-3"));
  await next.expect("welcome");
  await waitUntil("the silence of before is told no more", () => told()?.isEngineSilent !== true);
  agent.close();
  next.close();
});

test("one that leaves may have granted a right until then", async () => {
  await waitUntil("the first one has been there for a while", async () => {
    return ((await deciding.fleet.revokeRight("m-2", 1, signal())) ?? 0) > 1_000;
  });
  const beganMs = performance.now();
  await holder.close();
  const ungrantedForMs = await waitUntil("it is known to be gone", () =>
    deciding.fleet.revokeRight("m-2", 1, signal()),
  );
  expect(ungrantedForMs).toBeLessThanOrEqual(performance.now() - beganMs + stepMs);
});
