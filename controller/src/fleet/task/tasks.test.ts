import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { ControllerFrame } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { ConvergeInstanceSchema, PutEngineUserSchema, type Task } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { taskRequest } from "@holdfast/testing/engines/task-request.ts";
import { type AgentIdentity, helloOf, openSession, type TestSession } from "@holdfast/testing/machines/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { keyOf } from "#kernel/store/resource.ts";
import { type TaskInput, taskKind, type TaskRequest } from "./task.ts";
import { machineKind } from "../machine/machine.ts";

let installation: TestInstallation;
let one: TestController;
let two: TestController;

beforeAll(async () => {
  installation = await newInstallation();
  one = await startController(installation, "c-1", { limits: { checkIntervalMs: 100 } });
  two = await startController(installation, "c-2", { limits: { checkIntervalMs: 100 } });
});
afterAll(() => installation?.close());

function request(input: TaskInput = taskRequest.input, deadlineMs = 60_000): TaskRequest {
  return { ownerId: "service-1", generation: 3, term: 1, lane: "control", input, deadlineMs };
}

async function connected(controller: TestController, machineId: string, openTasks: string[] = []) {
  const identity = await controller.newAgent(machineId);
  return { identity, session: await reconnected(controller, machineId, identity, openTasks) };
}

async function reconnected(
  controller: TestController,
  machineId: string,
  identity: AgentIdentity,
  openTasks: string[] = [],
): Promise<TestSession> {
  const session = openSession(controller.dial(identity), helloOf(machineId, openTasks));
  await session.expect("welcome");
  return session;
}

const usersOf = (task: Task) => ({
  case: "taskResult" as const,
  value: {
    taskId: task.id,
    output: { case: "listEngineUsers" as const, value: { users: [{ username: "app_user", role: "admin" }] } },
  },
});

test("a quick task is answered on the stream and leaves nothing in the store", async () => {
  const { session } = await connected(one, "quick");
  const before = await one.store.revision();
  const running = one.fleet.run("quick", request(), 60_000);
  const task = await session.expect("task");
  expect(task).toMatchObject({ ownerId: "service-1", generation: 3n, term: 1n });
  session.send(usersOf(task));
  const result = await running;
  expect(result.output.value).toMatchObject({ users: [{ username: "app_user" }] });
  await session.expect("resultAck");
  expect(await one.store.revision()).toBe(before);
  session.close();
});

test("a quick task runs on a machine whose stream another controller has", async () => {
  const { session } = await connected(one, "forwarded");
  await expect.poll(() => two.fleet.session("forwarded")?.controllerId).toBe("c-1");
  const running = two.fleet.run("forwarded", request(), 60_000);
  session.send(usersOf(await session.expect("task")));
  expect((await running).output.case).toBe("listEngineUsers");
  session.close();
});

test("a quick task fails when there is no stream, no answer in time, or the stream breaks", async () => {
  await expect(one.fleet.run("nobody", request(), 100)).rejects.toMatchObject({ key: "MACHINE_UNREACHABLE" });
  const { session } = await connected(one, "mute");
  await expect(one.fleet.run("mute", request(), 50)).rejects.toThrow("did not respond in time");
  await session.expect("cancelTask");
  const broken = one.fleet.run("mute", request(), 60_000);
  await session.expect("task", ({ id }) => id !== "");
  session.close();
  await expect(broken).rejects.toThrow("stream broke");
});

test("a durable task goes to running and completed; its result is stored, then acknowledged", async () => {
  const identity = await one.newAgent("durable");
  await one.fleet.submit("durable", "t-durable", request());
  await one.fleet.submit("durable", "t-durable", request());
  expect(one.fleet.task("t-durable")?.status).toBe("pending");
  const session = await reconnected(one, "durable", identity);
  const task = await session.expect("task");
  await expect.poll(() => two.fleet.task("t-durable")?.status).toBe("running");
  session.send({ case: "taskProgress", value: { taskId: "t-durable", step: "start", progressPct: 40 } });
  await expect.poll(() => two.fleet.task("t-durable")?.progress?.progressPct).toBe(40);
  session.send(usersOf(task));
  await session.expect("resultAck", ({ taskId }) => taskId === "t-durable");
  expect((await one.store.get(keyOf(taskKind, "t-durable")))?.value).toContain("app_user");
  expect(one.fleet.task("t-durable")).toMatchObject({ status: "completed" });
  await expect.poll(() => two.fleet.task("t-durable")?.result?.output.case).toBe("listEngineUsers");
  expect(session.received.filter(({ frame }) => frame.case === "task")).toHaveLength(1);
  session.close();
});

test("a task submitted at another controller, or before the agent came, is delivered", async () => {
  await two.newMachine("late");
  await two.fleet.submit("late", "t-late", request());
  const { identity, session } = await connected(one, "late");
  await session.expect("task", ({ id }) => id === "t-late");
  await two.fleet.submit("late", "t-late-2", request());
  await session.expect("task", ({ id }) => id === "t-late-2");
  session.close();
  const again = await reconnected(one, "late", identity);
  await again.expect("task", ({ id }) => id === "t-late");
  await again.expect("task", ({ id }) => id === "t-late-2");
  again.close();
});

test("an agent's failure, a cancellation, the deadline and a deleted machine end a task", async () => {
  const { session } = await connected(one, "ends");
  await one.fleet.submit("ends", "t-fails", request());
  await session.expect("task", ({ id }) => id === "t-fails");
  session.send({
    case: "taskResult",
    value: { taskId: "t-fails", failure: { code: "engine_refused", message: "no" } },
  });
  await expect.poll(() => two.fleet.task("t-fails")?.result?.failure?.code).toBe("engine_refused");

  await one.fleet.submit("ends", "t-cancelled", request());
  await session.expect("task", ({ id }) => id === "t-cancelled");
  await two.fleet.cancel("t-cancelled");
  await session.expect("cancelTask", ({ taskId }) => taskId === "t-cancelled");

  await one.fleet.submit("ends", "t-slow", request(taskRequest.input, 3_000));
  await session.expect("cancelTask", ({ taskId }) => taskId === "t-slow");
  await expect
    .poll(() => one.fleet.task("t-slow"))
    .toMatchObject({ status: "failed", result: { failure: { code: "deadline_passed" } } });

  await one.fleet.submit("ends", "t-orphan", request());
  await session.expect("task", ({ id }) => id === "t-orphan");
  await one.store.commit({ conditions: [], puts: [], deletes: [keyOf(machineKind, "ends")] });
  await expect.poll(() => two.fleet.task("t-orphan")?.result?.failure?.code).toBe("machine_deleted");
  await session.ended;
});

test("a late result changes nothing; a result for another machine's task cuts the stream", async () => {
  const { session } = await connected(one, "mine");
  const { session: otherSession } = await connected(one, "theirs");
  await one.fleet.submit("mine", "t-mine", request());
  const task = await session.expect("task");
  otherSession.send(usersOf(task));
  expect((await otherSession.ended).details).toContain("another machine's task");
  session.send(usersOf(task));
  await session.expect("resultAck");
  session.send({ case: "taskResult", value: { taskId: "t-mine", failure: { code: "engine_refused", message: "no" } } });
  await expect.poll(() => session.received.filter(({ frame }) => frame.case === "resultAck")).toHaveLength(2);
  expect(one.fleet.task("t-mine")?.status).toBe("completed");
  session.close();
});

test("an ended task in a hello is acknowledged", async () => {
  const { identity, session } = await connected(one, "resumes");
  await one.fleet.submit("resumes", "t-resumes", request());
  session.send(usersOf(await session.expect("task")));
  await session.expect("resultAck");
  session.close();
  const again = await reconnected(one, "resumes", identity, ["t-resumes"]);
  await again.expect("resultAck", ({ taskId }) => taskId === "t-resumes");
  again.close();
});

test("sensitive fields reach the agent and are unreadable in the store and the log", async () => {
  const { session } = await connected(one, "secret");
  const verifier = `SCRAM-SHA-256$${randomBytes(12).toString("hex")}`;
  const user = { username: "app_user", role: "admin", verifier };
  const input: TaskInput = { case: "putEngineUser", value: create(PutEngineUserSchema, { user }) };
  await one.fleet.submit("secret", "t-secret", request(input));
  const task = await session.expect("task");
  expect(task.input.value).toMatchObject({ user: { verifier } });
  const stored = await one.store.get(keyOf(taskKind, "t-secret"));
  expect(stored?.value).toContain("app_user");
  expect(stored?.value).not.toContain(verifier);
  expect(JSON.stringify(one.logged)).not.toContain(verifier);
  session.close();
});

test("input and result over 64 KiB are in the object store, the task's object stays small", async () => {
  const { session } = await connected(one, "long");
  const nextCursor = "v".repeat(100_000);
  const parameters = Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`p${n}`, "v".repeat(400)]));
  const input: TaskInput = {
    case: "convergeInstance",
    value: create(ConvergeInstanceSchema, { instance: { serviceId: "s", parameters } }),
  };
  await one.fleet.submit("long", "t-long", request(input));
  const task = await session.expect("task");
  expect(task.input.value).toMatchObject({ instance: { parameters } });
  session.send({
    case: "taskResult",
    value: { taskId: "t-long", output: { case: "readLogs", value: { nextCursor } } },
  });
  await session.expect("resultAck");
  expect((await one.store.get(keyOf(taskKind, "t-long")))?.value.length).toBeLessThan(2_000);
  await expect.poll(() => two.fleet.task("t-long")?.result?.output.value).toMatchObject({ nextCursor });
  session.close();
});

test("the newest stream of a machine is its current one, at any controller", async () => {
  const { identity, session } = await connected(one, "moves");
  const moved = await reconnected(two, "moves", identity);
  expect((await session.ended).details).toContain("newer stream");
  await expect.poll(() => one.fleet.session("moves")?.controllerId).toBe("c-2");
  moved.close();
  await expect.poll(() => one.fleet.session("moves")).toBeUndefined();
});

test("the next controller delivers the tasks of a controller that ended again", async () => {
  const dying = await startController(installation, "c-3", { leaseS: 2 });
  const { identity, session } = await connected(dying, "orphaned");
  await one.fleet.submit("orphaned", "t-again", request());
  await session.expect("task");
  await dying.close();
  const again = await reconnected(one, "orphaned", identity, ["t-again"]);
  const task = await again.expect("task", ({ id }) => id === "t-again");
  again.send(usersOf(task));
  await again.expect("resultAck");
  expect(one.fleet.task("t-again")?.status).toBe("completed");
  again.close();
});

test("ended tasks are deleted after their retention", async () => {
  const sweeper = await startController(installation, "c-4", {
    limits: { taskRetentionMs: 0, checkIntervalMs: 50 },
    clock: fastClock(),
  });
  const { session } = await connected(one, "swept");
  await one.fleet.submit("swept", "t-swept", request());
  session.send(usersOf(await session.expect("task")));
  await session.expect("resultAck");
  await expect.poll(() => one.fleet.task("t-swept")).toBeUndefined();
  session.close();
  await sweeper.close();
});

/** A controller whose monotonic time is a thousand times as fast. */
function fastClock() {
  const begin = performance.now();
  return { now: () => Date.now(), monotonicMs: () => Math.round((performance.now() - begin) * 1_000) };
}

test.each(["c-1", "c-2"])(
  "many concurrent tasks, submitted at %s and completed immediately, are delivered to the agent once each",
  async (where) => {
    const machineId = `busy-${where}`;
    const { session } = await connected(one, machineId);
    session.call.on("data", ({ frame }: ControllerFrame) => {
      if (frame.case === "task") session.send(usersOf(frame.value));
    });
    const ids = Array.from({ length: 200 }, (_, n) => `t-${where}-${n}`);
    const { fleet } = where === "c-1" ? one : two;
    await Promise.all(ids.map((id) => fleet.submit(machineId, id, request())));
    await expect.poll(() => ids.every((id) => two.fleet.task(id)?.status === "completed")).toBe(true);
    // A second delivery would be on the stream before the last task.
    await fleet.submit(machineId, `t-${where}-last`, request());
    await expect.poll(() => two.fleet.task(`t-${where}-last`)?.status).toBe("completed");
    expect(session.received.filter(({ frame }) => frame.case === "task")).toHaveLength(201);
    expect(session.received.filter(({ frame }) => frame.case === "cancelTask")).toHaveLength(0);
    session.close();
  },
);
