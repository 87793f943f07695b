import { afterAll, beforeAll, expect, test } from "vitest";
import { taskRequest } from "@holdfast/testing/engines/task-request.ts";
import { helloOf, openSession } from "@holdfast/testing/machines/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";

let installation: TestInstallation;
let controller: TestController;

beforeAll(async () => {
  installation = await newInstallation();
  controller = await startController(installation, "c-1");
});
afterAll(() => installation?.close());

const request = { ...taskRequest, lane: "query" } as const;
const hello = (machineId: string, change: object) => {
  const { case: kind, value } = helloOf(machineId);
  return { case: kind, value: { ...value, ...change } };
};

test("a standby agent is welcomed, and the active one continues undisturbed", async () => {
  const { fleet } = controller;
  const identity = await controller.newAgent("m-1");
  const old = openSession(controller.dial(identity), hello("m-1", { sessionId: "old", agentDigest: "d-old" }));
  await old.expect("welcome");
  const next = openSession(
    controller.dial(identity),
    hello("m-1", { sessionId: "next", standby: true, agentDigest: "d-next" }),
  );
  await next.expect("welcome");
  expect(fleet.session("m-1")).toMatchObject({ agentDigest: "d-old" });
  const answer = fleet.run("m-1", request, 30_000);
  const task = await old.expect("task");
  old.send({ case: "taskResult", value: { taskId: task.id } });
  expect((await answer).taskId).toBe(task.id);
  expect(
    next.received.some((frame) =>
      JSON.stringify(frame, (_, value) => (typeof value === "bigint" ? String(value) : value)).includes(task.id),
    ),
  ).toBe(false);
  // A standby must not send results or observations.
  next.send({ case: "taskResult", value: { taskId: task.id } });
  expect(await next.ended).toMatchObject({ code: 3, details: "a standby sends heartbeats only" });
  expect(fleet.session("m-1")).toMatchObject({ agentDigest: "d-old" });
  old.close();
});

test("unanswered tasks are sent to the agent's replacement, not to an unrelated agent", async () => {
  const { fleet } = controller;
  const identity = await controller.newAgent("m-2");
  const old = openSession(controller.dial(identity), hello("m-2", { sessionId: "old" }));
  await old.expect("welcome");
  const answer = fleet.run("m-2", request, 30_000);
  const { id } = await old.expect("task");
  const next = openSession(
    controller.dial(identity),
    hello("m-2", { sessionId: "next", replacesSessionId: "old", agentDigest: "d-next", keeperProtocol: 2 }),
  );
  expect((await next.expect("task")).id).toBe(id);
  await old.expect("goodbye");
  next.send({ case: "taskResult", value: { taskId: id } });
  expect((await answer).taskId).toBe(id);
  expect(fleet.session("m-2")).toMatchObject({ agentDigest: "d-next", keeperProtocol: 2 });
  const lost = fleet.run("m-2", request, 30_000);
  lost.catch(() => undefined);
  await next.expect("task", (task) => task.id !== id);
  const otherAgent = openSession(
    controller.dial(identity),
    hello("m-2", { sessionId: "stranger", replacesSessionId: "old" }),
  );
  await otherAgent.expect("welcome");
  await expect(lost).rejects.toMatchObject({ key: "MACHINE_UNREACHABLE" });
  otherAgent.close();
});
