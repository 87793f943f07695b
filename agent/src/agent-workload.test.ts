import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { metricOf } from "@holdfast/common/metric-catalog.ts";
import {
  Lane,
  ReadLogsSchema,
  type TaskResult,
  TaskClass,
  WorkloadSpecSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { beforeEach, expect, test } from "vitest";
import { openFixtureMachine, taskHeader } from "@holdfast/testing/machines/fixture-machine.ts";

// The fixture workload is not an engine (testing/src/machines/fixture-workload.ts). The keeper and the agent are real.

const machine = await openFixtureMachine();
const { controller, start, startKeeper, keeper, specOf, converge, agentPids, observed, pidsOf } = machine;
const processPids = () => pidsOf("fixture-process.ts");

controller.sampleIntervalMs = 500;
beforeEach(start);

function apply(change: MessageInitShape<typeof WorkloadSpecSchema> = {}): Promise<TaskResult> {
  const workload = create(WorkloadSpecSchema, {
    workload: { case: "fixture", value: { message: "hello" } },
    ownerId: "s-1",
    nodeId: "n-1",
    generation: 1n,
    term: 1n,
    running: true,
    storageBytes: 1n << 40n,
    ...change,
  });
  const { generation, term } = workload;
  const input = { case: "convergeInstance" as const, value: { workload } };
  return controller.perform({ ...taskHeader, generation, term, input });
}

async function logLines(): Promise<string[]> {
  const input = { case: "readLogs" as const, value: create(ReadLogsSchema, { limit: 100 }) };
  const { output } = await controller.perform({ ...taskHeader, generation: 9n, lane: Lane.QUERY, input });
  return output.case === "readLogs"
    ? output.value.lines.map(({ component, message }) => `${component} ${message}`)
    : [];
}

test("a workload that is not an engine is started, changed, restarted, stopped and started again", async () => {
  expect(controller.hellos.at(-1)?.workloads).toEqual(["engine", "app", "fixture"]);
  expect((await apply()).failure).toBeUndefined();
  expect(await observed(({ state }) => state === "running")).toMatchObject({ serviceId: "s-1", nodeId: "n-1" });
  const [first] = processPids();
  await apply({ generation: 2n });
  await observed(({ generation, savedGeneration }) => generation === 2n && savedGeneration === 2n);
  expect(processPids()).toEqual([first]);

  await apply({ generation: 3n, workload: { case: "fixture", value: { message: "changed" } } });
  expect(processPids()).not.toEqual([first]);
  await expect.poll(logLines).toEqual(expect.arrayContaining(["fixture shutting down", "fixture changed"]));

  expect((await apply({ generation: 2n })).failure?.code).toBe("superseded");
  await apply({ generation: 4n, running: false });
  await observed(({ state, generation }) => state === "stopped" && generation === 4n);
  expect(processPids()).toEqual([]);
  await apply({ generation: 5n });
  await observed(({ state, generation }) => state === "running" && generation === 5n);
});

test("it is restarted after kill -9, and adopted by the next agent and the next keeper's agent", async () => {
  await apply();
  const [first] = processPids();
  process.kill(first as number, "SIGKILL");
  let second: number | undefined;
  // A process has no command line for an instant while its program starts.
  await expect.poll(() => ([second] = processPids()).length === 1 && second !== first).toBe(true);
  await observed(({ state, reason }) => state === "starting" && reason === "The process ended and is started again.");

  for (const pid of agentPids()) process.kill(pid, "SIGKILL");
  controller.observations.length = 0;
  await observed(({ state }) => state === "running");
  expect(processPids()).toEqual([second]);

  keeper().kill("SIGKILL");
  await expect.poll(() => processPids().length + agentPids().length).toBe(0);
  controller.observations.length = 0;
  startKeeper();
  await observed(({ state }) => state === "running");
  await expect.poll(() => processPids().length).toBe(1);
});

test("its machine is measured, with its own metrics", async () => {
  await apply();
  const names = ["health", "disk"].map((name) => metricOf(name)?.number);
  await expect
    .poll(() => controller.samples.some(({ slots }) => names.every((number) => slots.includes(number ?? 0))))
    .toBe(true);
});

test("tasks of engines are refused, and so is another kind of workload", async () => {
  await apply();
  const list = { case: "listEngineUsers" as const, value: {} };
  expect((await controller.perform({ ...taskHeader, lane: Lane.QUERY, input: list })).failure).toMatchObject({
    code: "not_supported",
    message: "This machine runs no engine.",
  });
  const change = { case: "putEngineUser" as const, value: { user: { username: "a" } } };
  const durable = { ...taskHeader, id: "put-1", class: TaskClass.DURABLE, input: change };
  expect((await controller.perform(durable)).failure?.code).toBe("not_supported");
  expect((await converge({ generation: 2n })).failure).toMatchObject({
    code: "invalid_task",
    message: "This machine has a workload of the kind fixture, not engine.",
  });
  expect(processPids()).toHaveLength(1);
});

test("an engine is applied as the kind of a workload, and as older controllers send it", async () => {
  const spec = specOf();
  const workload = create(WorkloadSpecSchema, { workload: { case: "engine", value: spec } });
  const input = { case: "convergeInstance" as const, value: { workload } };
  expect((await controller.perform({ ...taskHeader, input })).failure).toBeUndefined();
  await observed(({ state, generation }) => state === "running" && generation === 1n);
  await converge({ generation: 2n });
  await observed(({ state, generation }) => state === "running" && generation === 2n);
  expect((await apply({ generation: 3n })).failure?.code).toBe("invalid_task");
});

test("a kind that the agent does not know is refused, and changes nothing", async () => {
  const unknown = create(WorkloadSpecSchema, { ownerId: "s-1", generation: 1n, term: 1n, running: true });
  const input = { case: "convergeInstance" as const, value: { workload: unknown } };
  expect((await controller.perform({ ...taskHeader, input })).failure).toMatchObject({
    code: "not_supported",
    message: "This machine's agent does not run this kind of workload.",
  });
  expect((await apply()).failure).toBeUndefined();
});

test("nothing of it remains when its machine ends", async () => {
  await apply();
  keeper().kill("SIGTERM");
  await expect.poll(() => keeper().exitCode).toBe(0);
  expect(processPids()).toEqual([]);
  expect(machine.log()).toContain("shutting down");
});
