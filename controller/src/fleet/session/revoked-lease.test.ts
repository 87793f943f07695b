import { afterAll, beforeAll, expect, test } from "vitest";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { helloOf, openSession } from "@holdfast/testing/machines/test-agent.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

let installation: TestInstallation;
let deciding: TestController;
let holder: TestController;

/** The host's uptime has steps of 10 ms, so a duration is wrong by one step at most. */
const stepMs = 10;
const signal = () => AbortSignal.timeout(60_000);
/** Rules by which every machine may be the primary of its service. */
const rightRules = { refusal: () => undefined, untilRevision: async () => undefined };

beforeAll(async () => {
  installation = await newInstallation();
  deciding = await startController(installation, "deciding", { primaryLeaseRules: rightRules });
  holder = await startController(installation, "holder", { primaryLeaseRules: rightRules });
});
afterAll(() => installation?.close());

test("a revoked lease is refused by the controller that granted it", async () => {
  const identity = await holder.newAgent("m-1");
  const agent = openSession(holder.dial(identity), helloOf("m-1"));
  await agent.expect("welcome");
  const request = async (number: bigint, term: bigint) => {
    agent.send({ case: "primaryLeaseRequest", value: { serviceId: "s", term, number, engineUnresponsive: false } });
    return waitUntil("a response", () => {
      const answers = agent.received.flatMap(({ frame }) => (frame.case === "primaryLeaseResponse" ? frame.value : []));
      return answers.find((answer) => answer.number === number);
    });
  };
  const beganMs = performance.now();
  expect(await request(1n, 1n)).toMatchObject({ granted: true });
  const revoke = () => deciding.fleet.revokePrimaryLease("m-1", 1, signal());
  const ungrantedForMs = await waitUntil("all controllers confirmed", revoke);
  // The holder granted it; the deciding controller never did.
  expect(ungrantedForMs).toBeLessThanOrEqual(performance.now() - beganMs + stepMs);
  expect(await request(2n, 1n)).toMatchObject({ granted: false, reason: "leases under this term are revoked" });
  expect(await request(3n, 2n)).toMatchObject({ granted: true });
  agent.close();
});

test("a silent primary or engine is reported to controllers without its stream", async () => {
  const identity = await holder.newAgent("m-3");
  const agent = openSession(holder.dial(identity), helloOf("m-3"));
  await agent.expect("welcome");
  const request = (number: bigint, engineSilent: boolean) =>
    agent.send({
      case: "primaryLeaseRequest",
      value: { serviceId: "s", term: 1n, number, engineUnresponsive: engineSilent },
    });
  const results = () => deciding.fleet.controllerLeaseReport("m-3");
  let number = 1n;
  request(number, true);
  await waitUntil("the unresponsive engine is reported", () => results()?.isEngineUnresponsive === true);
  await waitUntil("no report while requests are on time", () => {
    request((number += 1n), false);
    return results() === undefined;
  });
  const beganMs = performance.now();
  await waitUntil("the overdue request is reported", () => (results()?.requestedAgoMs ?? 0) > 3_000);
  expect(performance.now() - beganMs).toBeGreaterThan(2_900);
  expect(results()?.isEngineUnresponsive).toBe(false);
  // The controller with the stream has no report of another one.
  expect(holder.fleet.controllerLeaseReport("m-3")).toBeUndefined();
  request((number += 1n), true);
  await waitUntil("the unresponsive engine is reported again", () => results()?.isEngineUnresponsive === true);
  // The agent's next stream ends the reports on the previous one.
  const next = openSession(holder.dial(identity), helloOf("m-3"));
  await next.expect("welcome");
  await waitUntil("the report ends", () => results()?.isEngineUnresponsive !== true);
  agent.close();
  next.close();
});

test("a controller that left may have granted a lease until then", async () => {
  await waitUntil("the holder has run for a while", async () => {
    return ((await deciding.fleet.revokePrimaryLease("m-2", 1, signal())) ?? 0) > 1_000;
  });
  const beganMs = performance.now();
  await holder.close();
  const ungrantedForMs = await waitUntil("its departure is noticed", () =>
    deciding.fleet.revokePrimaryLease("m-2", 1, signal()),
  );
  expect(ungrantedForMs).toBeLessThanOrEqual(performance.now() - beganMs + stepMs);
});
