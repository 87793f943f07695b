import { afterAll, beforeAll, expect, test } from "vitest";
import { enroll, helloOf, newKeys, openSession, renew } from "@holdfast/testing/machines/test-agent.ts";
import {
  installationId,
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { machineKind } from "../machine/machine.ts";

let installation: TestInstallation;
let controller: TestController;
let behind = false;

beforeAll(async () => {
  installation = await newInstallation();
  controller = await startController(installation, "c-1", { storeMayBeBehind: () => behind });
});
afterAll(() => installation?.close());

function enrollWith(machineId: string, token: string, over: Partial<{ installationId: string }> = {}) {
  const { address, authority } = controller;
  return enroll({ address, trustBundle: authority.trustBundle, installationId, machineId, token, ...over });
}

test("one of twenty concurrent enrollments with one token gets a certificate", async () => {
  const token = await controller.newMachine("race");
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => enrollWith("race", token)));
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
});

test.each([
  ["another token", "known", "wrong", {}],
  ["a machine that does not exist", "unknown", undefined, {}],
  ["another installation", "known", undefined, { installationId: "other" }],
  ["a machine id that is a path", "../machine/known", undefined, {}],
])("%s is refused without a reason", async (_what, machineId, token, over) => {
  const good = await controller.newMachine("known");
  await expect(enrollWith(machineId, token ?? good, over)).rejects.toThrow("the enrollment is not valid");
});

test("a token is valid once and is not in the store", async () => {
  const token = await controller.newMachine("once");
  const stored = await controller.store.get(keyOf(machineKind, "once"));
  expect(stored?.value).not.toContain(token);
  await enrollWith("once", token);
  await expect(enrollWith("once", token)).rejects.toThrow("the enrollment is not valid");
});

test("an enrollment can be repeated by the same key only, while the token is valid", async () => {
  const token = await controller.newMachine("lost");
  const { address, authority } = controller;
  const options = { address, trustBundle: authority.trustBundle, installationId, machineId: "lost", token };
  const keys = await newKeys();
  const unheard = await enroll(options, keys);
  const repeated = await enroll(options, keys);
  await expect(enroll(options, await newKeys())).rejects.toThrow("the enrollment is not valid");
  // The earlier response may have arrived, so both are valid until the newer one is used.
  const first = openSession(controller.dial(unheard), helloOf("lost"));
  await first.expect("welcome");
  const second = openSession(controller.dial(repeated), helloOf("lost"));
  await second.expect("welcome");
  await expect.poll(() => controller.machines.get("lost")?.object.status.certificate?.previousSerial).toBe("");
  const third = openSession(controller.dial(unheard), helloOf("lost"));
  expect((await third.ended).details).toContain("not valid any more");
  second.close();
});

test("a new enrollment cuts the stream of the previous certificate", async () => {
  const older = await controller.newAgent("twice");
  const client = controller.dial(older);
  const session = openSession(client, helloOf("twice"));
  await session.expect("welcome");
  await controller.newAgent("twice");
  expect((await session.ended).details).toContain("superseded");
  const again = openSession(controller.dial(older), helloOf("twice"));
  expect((await again.ended).details).toContain("not valid any more");
  client.close();
});

test("after a renewal both certificates are valid until the new one is used", async () => {
  const older = await controller.newAgent("renews");
  const newer = await renew(controller.address, older);
  const first = openSession(controller.dial(older), helloOf("renews"));
  await first.expect("welcome");
  const second = openSession(controller.dial(newer), helloOf("renews"));
  await second.expect("welcome");
  expect((await first.ended).details).toContain("newer stream");
  await expect.poll(() => controller.machines.get("renews")?.object.status.certificate?.previousSerial).toBe("");
  const third = openSession(controller.dial(older), helloOf("renews"));
  expect((await third.ended).details).toContain("not valid any more");
  await expect(renew(controller.address, older)).rejects.toThrow("not valid any more");
  second.close();
});

test("a certificate lost in a restore is adopted, a superseded one is not", async () => {
  const key = keyOf(machineKind, "restored");
  const older = await controller.newAgent("restored");
  const snapshot = await controller.store.get(key);
  const issuedAt = Date.now();
  await waitUntil("the next second, as times of a certificate are", () => Date.now() - issuedAt > 1_000);
  const newer = await renew(controller.address, older);
  const put = { key, value: snapshot?.value ?? "" };
  const restore = async () => controller.store.commit({ conditions: [], puts: [put], deletes: [] });
  await restore();
  const refused = openSession(controller.dial(newer), helloOf("restored"));
  expect((await refused.ended).details).toContain("not valid any more");
  behind = true;
  const adopted = openSession(controller.dial(newer), helloOf("restored"));
  await adopted.expect("welcome");
  await expect.poll(() => controller.machines.get("restored")?.object.status.certificate?.previousSerial).toBe("");
  const superseded = openSession(controller.dial(older), helloOf("restored"));
  expect((await superseded.ended).details).toContain("not valid any more");
  behind = false;
  adopted.close();
});

test("the stream of a deleted machine is cut immediately", async () => {
  const agent = await controller.newAgent("deleted");
  const session = openSession(controller.dial(agent), helloOf("deleted"));
  await session.expect("welcome");
  await controller.store.commit({ conditions: [], puts: [], deletes: [keyOf(machineKind, "deleted")] });
  expect((await session.ended).details).toContain("machine deleted");
  expect(controller.fleet.session("deleted")).toBeUndefined();
});
