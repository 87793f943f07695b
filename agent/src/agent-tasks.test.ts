import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Lane, TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { beforeEach, expect, test } from "vitest";
import { signalIfAlive } from "../keeper/signal-process.ts";
import { openFixtureMachine, taskHeader } from "@holdfast/testing/machines/fixture-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const { controller, start, specOf, converge, agentPids } = await openFixtureMachine();

beforeEach(start);

test("an older term is refused, across a restart of the agent too", async () => {
  await converge({ term: 5n });
  const stale = () => converge({ term: 4n, generation: 2n });
  expect((await stale()).failure?.code).toBe("stale_term");
  for (const pid of agentPids()) process.kill(pid, "SIGKILL");
  await expect.poll(() => controller.hellos.length).toBeGreaterThan(1);
  expect(controller.hellos[1]?.terms["s-1"]).toBe(5n);
  expect((await stale()).failure?.code).toBe("stale_term");
});

test("an older generation of the same kind is superseded", async () => {
  await converge({ generation: 3n });
  expect((await converge({ generation: 2n })).failure?.code).toBe("superseded");
});

test("a repeated durable task gets the recorded result, which is sent until acknowledged", async () => {
  await converge();
  controller.acknowledges = false;
  const user = { username: "u", role: "readonly", verifier: "v" };
  const task = {
    ...taskHeader,
    id: "task-1",
    class: TaskClass.DURABLE,
    input: { case: "putEngineUser" as const, value: { user } },
  };
  expect((await controller.perform(task)).output).toMatchObject({ case: "putEngineUser", value: { changed: true } });
  for (const pid of agentPids()) process.kill(pid, "SIGKILL");
  await expect.poll(() => controller.hellos.length).toBeGreaterThan(1);
  expect(controller.hellos[1]?.openTasks).toEqual(["task-1"]);
  const sent = () => controller.results.filter(({ taskId }) => taskId === "task-1").length;
  await expect.poll(sent).toBeGreaterThan(1);
  controller.acknowledges = true;
  // The engine is not called: it would refuse this input.
  const changed = { ...task.input, value: { user: { ...user, username: "bad" } } };
  expect((await controller.perform({ ...task, input: changed })).failure).toBeUndefined();
  // Request and result share the stream, so earlier acknowledgments have arrived.
  await controller.perform({ ...taskHeader, lane: Lane.QUERY, input: { case: "readLogs", value: {} } });
  const { length } = controller.hellos;
  controller.cut();
  await expect.poll(() => controller.hellos.length).toBeGreaterThan(length);
  expect(controller.hellos.at(-1)?.openTasks).toEqual([]);
});

test("refusals of the engine and missing features have different codes", async () => {
  await converge();
  const put = { case: "putEngineUser" as const, value: { user: { username: "bad", role: "admin", verifier: "v" } } };
  expect((await controller.perform({ ...taskHeader, input: put })).failure).toMatchObject({
    code: "engine_refused",
    message: "role bad is reserved",
  });
  const list = { case: "listEngineDatabases" as const, value: {} };
  expect((await controller.perform({ ...taskHeader, input: list })).failure?.code).toBe("not_supported");
});

test("a task ends at its deadline or cancellation without blocking another lane", async () => {
  const slow = {
    case: "convergeInstance" as const,
    value: { instance: specOf({ parameters: { slow_start_ms: "60000" } }) },
  };
  const late = await controller.perform({ ...taskHeader, deadline: timestampFromMs(Date.now() + 300), input: slow });
  expect(late.failure?.code).toBe("deadline_exceeded");
  const canceled = controller.perform({ ...taskHeader, id: "to-cancel", input: slow });
  controller.send({ case: "cancelTask", value: { taskId: "to-cancel" } });
  expect((await canceled).failure?.code).toBe("cancelled");
  const quick = await controller.perform({ ...taskHeader, lane: Lane.QUERY, input: { case: "readLogs", value: {} } });
  expect(quick.output.case).toBe("readLogs");
});

test("a task has its own time limit, which does not depend on the controller's clock", async () => {
  const readLogs = { ...taskHeader, lane: Lane.QUERY, input: { case: "readLogs" as const, value: {} } };
  const aMinute = (sign: 1 | -1) => timestampFromMs(Date.now() + sign * 60_000);
  const back = await controller.perform({ ...readLogs, deadline: aMinute(-1), withinMs: 60_000n });
  expect(back.output.case).toBe("readLogs");
  const slow = {
    case: "convergeInstance" as const,
    value: { instance: specOf({ parameters: { slow_start_ms: "60000" } }) },
  };
  const ahead = await controller.perform({ ...taskHeader, deadline: aMinute(1), withinMs: 300n, input: slow });
  expect(ahead.failure?.code).toBe("deadline_exceeded");
});

test("withdrawn tasks end without waiting, and never start when they arrive later", async () => {
  const durable = { ...taskHeader, class: TaskClass.DURABLE };
  const slow = {
    case: "convergeInstance" as const,
    value: { instance: specOf({ parameters: { slow_start_ms: "60000" } }) },
  };
  controller.deliver({ ...durable, id: "withdrawn-running", input: slow });
  const dropEngineUser = { case: "dropEngineUser" as const, value: { username: "u" } };
  const withdrawnTasks = ["withdrawn-running", "withdrawn-coming"];
  const settleEngineChange = { withdrawnTasks, change: dropEngineUser };
  const settle = () =>
    controller.perform({
      ...taskHeader,
      lane: Lane.QUERY,
      input: { case: "settleEngineChange", value: settleEngineChange },
    });
  // Nothing is started, so the engine's state is unknown yet.
  expect((await settle()).failure?.code).toBe("not_ready");
  const ends = controller.results.filter(({ taskId }) => taskId === "withdrawn-running");
  expect(ends.map(({ failure }) => failure?.code)).toEqual(["cancelled"]);
  const late = await controller.perform({ ...durable, id: "withdrawn-coming", input: dropEngineUser });
  expect(late.failure).toMatchObject({ code: "cancelled", message: "The task was withdrawn." });
  await converge({ generation: 2n });
  expect((await settle()).output.value).toMatchObject({ taken: true });
});

test("tasks sent before a pause run after it only if the stream survived the pause", async () => {
  // A controller silent for three heartbeats counts as dead.
  controller.heartbeatIntervalMs = 500;
  controller.cut();
  await expect.poll(() => controller.hellos.length).toBeGreaterThan(1);
  controller.heartbeatIntervalMs = 5_000;
  await converge();
  const { length } = controller.hellos;
  const readLogs = { ...taskHeader, lane: Lane.QUERY, input: { case: "readLogs" as const, value: {} } };
  const paused = async (ask: () => void) => {
    const [agent = 0] = agentPids();
    signalIfAlive(agent, "SIGSTOP");
    ask();
    // Time: the length of the pause, more than three heartbeats of the first controller and fewer of this one.
    await sleep(2_000);
    signalIfAlive(agent, "SIGCONT");
  };
  await paused(() => controller.deliver({ ...readLogs, id: "quick-outlived" }));
  await expect.poll(() => controller.results.map(({ taskId }) => taskId)).toContain("quick-outlived");
  await paused(() => {
    controller.deliver({ ...readLogs, id: "quick-given-up" });
    controller.cut();
  });
  await expect.poll(() => controller.hellos.length).toBeGreaterThan(length);
  expect((await controller.perform(readLogs)).output.case).toBe("readLogs");
  expect(controller.results.map(({ taskId }) => taskId)).not.toContain("quick-given-up");
});

test("a payload of 30 MB is copied with its checksum, and a wrong one is refused", async () => {
  const bytes = randomBytes(30 << 20);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  controller.payloads.set("big", bytes);
  const copy = (reference: { id: string; sizeBytes: bigint; sha256: string }) =>
    controller.perform({
      ...taskHeader,
      lane: Lane.BULK,
      input: { case: "copyPayload", value: { payload: reference } },
    });
  const reference = { id: "big", sizeBytes: BigInt(bytes.byteLength), sha256 };
  const result = await copy(reference);
  expect(result.output.value).toMatchObject({ payload: { sha256 } });
  expect(controller.progress.length).toBeGreaterThan(5);
  expect((await copy({ ...reference, sha256: "00".repeat(32) })).failure?.code).toBe("payload_corrupt");
});

test("logs are read by cursor and level", async () => {
  await converge();
  const read = async (value: { cursor?: string; level?: string; limit?: number }) => {
    const result = await controller.perform({ ...taskHeader, lane: Lane.QUERY, input: { case: "readLogs", value } });
    if (result.output.case !== "readLogs") throw new Error(JSON.stringify(result.failure));
    return result.output.value;
  };
  // The engine's output reaches its log later, without a notice.
  const found = async (from: { cursor?: string }, message: string) => {
    const readLog = async () => {
      const answer = await read(from);
      return answer.lines.length > 0 && answer;
    };
    const answer = await waitUntil(`the log has: ${message}`, readLog);
    expect(answer.lines.map((line) => line.message)).toEqual([message]);
    return answer;
  };
  await waitUntil("the log has two lines", async () => (await read({})).lines.length === 2);
  const first = await read({ limit: 1 });
  expect(first).toMatchObject({
    hasMore: true,
    lines: [{ component: "engine", level: "info", message: "starting" }],
  });
  const second = await found({ cursor: first.nextCursor }, "ready");
  expect((await read({ level: "error" })).lines).toEqual([]);
  await converge({ generation: 2n, parameters: { a: "b" } });
  await found({ cursor: second.nextCursor }, "reloaded");
});
