import type { Task } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { taskRequest } from "@holdfast/testing/engines/task-request.ts";
import { helloOf, openSession, type TestSession } from "@holdfast/testing/machines/test-agent.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";

let installation: TestInstallation;
/** The controller with the streams. */
let holder: TestController;
let other: TestController;
const limits = { quickTasks: { concurrency: 3, queued: 2 } };

beforeAll(async () => {
  installation = await newInstallation();
  holder = await startController(installation, "c-1", { limits });
  other = await startController(installation, "c-2", { limits });
});
afterAll(() => installation?.close());

let machine: string;
let session: TestSession;
let machines = 0;

beforeEach(async () => {
  machines += 1;
  machine = `m-${machines}`;
  session = openSession(holder.dial(await holder.newAgent(machine)), helloOf(machine));
  await session.expect("welcome");
  session.sendHeartbeats();
  await expect.poll(() => other.fleet.session(machine)?.controllerId).toBe("c-1");
  return () => session.close();
});

const ask = (controller: TestController, signal?: AbortSignal) =>
  controller.fleet.run(machine, taskRequest, 60_000, signal);

const requested = (): Task[] => session.received.flatMap(({ frame }) => (frame.case === "task" ? [frame.value] : []));

function answer(task: Task | undefined): void {
  const value = { taskId: task?.id ?? "", output: { case: "listEngineUsers" as const, value: {} } };
  session.send({ case: "taskResult", value });
}

test("tasks over the limit wait in order, and further ones are refused by both controllers", async () => {
  const runs = Array.from({ length: 3 }, () => ask(holder));
  await expect.poll(requested).toHaveLength(3);
  runs.push(ask(holder), ask(other));
  const refusal = { key: "RATE_LIMITED", retryAfterS: 1 };
  await expect.poll(() => ask(other).then(String, (error: unknown) => error)).toMatchObject(refusal);
  await expect(ask(holder)).rejects.toMatchObject(refusal);
  expect(requested()).toHaveLength(3);
  // After each result the next waiting task is sent, in the order of the requests.
  for (let n = 0; n < 5; n += 1) {
    await expect.poll(requested).toHaveLength(Math.min(5, 3 + n));
    answer(requested()[n]);
    await runs[n];
  }
  expect(requested()).toHaveLength(5);
});

test("another lane of the machine and another machine do not wait", async () => {
  const runs = Array.from({ length: 4 }, () => ask(holder));
  await expect.poll(requested).toHaveLength(3);
  const query = holder.fleet.run(machine, { ...taskRequest, lane: "query" }, 60_000);
  await expect.poll(requested).toHaveLength(4);
  answer(requested()[3]);
  await query;
  for (let n = 0; n < 3; n += 1) answer(requested()[n]);
  await expect.poll(requested).toHaveLength(5);
  answer(requested()[4]);
  await Promise.all(runs);
});

test("a task whose caller aborts or times out leaves the queue", async () => {
  const runs = Array.from({ length: 3 }, () => ask(holder));
  await expect.poll(requested).toHaveLength(3);
  const aborted = new AbortController();
  const waiting = ask(holder, aborted.signal);
  const late = holder.fleet.run(machine, taskRequest, 200);
  await expect(ask(holder)).rejects.toMatchObject({ key: "RATE_LIMITED" });
  aborted.abort(new Error("gave up"));
  await expect(waiting).rejects.toThrow("gave up");
  await expect(late).rejects.toMatchObject({ key: "MACHINE_UNREACHABLE" });
  const last = ask(holder);
  for (let n = 0; n < 3; n += 1) answer(requested()[n]);
  await expect.poll(requested).toHaveLength(4);
  answer(requested()[3]);
  await Promise.all([...runs, last]);
});

test("when the stream breaks, sent and queued tasks fail immediately", async () => {
  const runs = Array.from({ length: 5 }, () => ask(holder));
  await expect.poll(requested).toHaveLength(3);
  session.close();
  const outcomes = await Promise.allSettled(runs);
  expect(outcomes.map((outcome) => outcome.status === "rejected" && outcome.reason.key)).toEqual(
    Array.from({ length: 5 }, () => "MACHINE_UNREACHABLE"),
  );
});
