import { systemClock } from "@holdfast/common/clock.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";
import { helloOf, openSession, type TestSession } from "@holdfast/testing/machines/test-agent.ts";
import { TaskNotSent } from "#fleet/task-not-sent.ts";
import { replicationStatus } from "./replication-status.ts";

let installation: TestInstallation;
let target: TestController;
let two: TestController;

beforeAll(async () => {
  installation = await newInstallation();
  target = await startController(installation, "c-1");
  two = await startController(installation, "c-2");
});
afterAll(() => installation?.close());

async function connected(controller: TestController, machineId: string): Promise<TestSession> {
  const session = openSession(controller.dial(await controller.newAgent(machineId)), helloOf(machineId));
  await session.expect("welcome");
  await expect.poll(() => [target, two].every(({ fleet }) => fleet.session(machineId) !== undefined)).toBe(true);
  return session;
}

/** Status of a primary on this machine, by this controller. */
function statusAt({ fleet }: TestController, machineId: string) {
  const node = { id: machineId, role: "primary", hostname: "db-1.local", zone: "local" } as const;
  const service = runningService({}, { nodes: [node] }, { primaryNodeId: machineId });
  return replicationStatus(service, node, { fleet, clock: systemClock }, new AbortController().signal);
}

const answered = new WeakMap<TestSession, Set<string>>();

async function answer(session: TestSession): Promise<void> {
  const expected = answered.get(session) ?? new Set();
  answered.set(session, expected);
  const { id } = await session.expect("task", ({ id: next }) => !expected.has(next));
  expected.add(id);
  const value = { role: "primary", position: "0/1", timeline: 1 };
  session.send({ case: "taskResult", value: { taskId: id, output: { case: "readReplication", value } } });
}

test("a node is queried through the controller of its stream", async () => {
  const session = await connected(target, "asked");
  for (const controller of [target, two]) {
    const status = statusAt(controller, "asked");
    await answer(session);
    expect(await status).toMatchObject({ connected: true, position: "0/1" });
  }
  session.close();
});

test("a node that does not answer, or has no stream, is not connected", async () => {
  const session = await connected(target, "mute");
  const reported = await Promise.all([statusAt(target, "mute"), statusAt(two, "mute"), statusAt(target, "away")]);
  for (const status of reported) expect(status).toMatchObject({ connected: false });
  session.close();
});

test("the status of an unreachable node is an error, not a guess", async () => {
  const unheard = await startController(installation, "c-unheard", { advertise: "127.0.0.1:1" });
  const session = await connected(unheard, "unheard");
  await expect(statusAt(target, "unheard")).rejects.toThrow("did not respond");
  const status = statusAt(unheard, "unheard");
  await answer(session);
  expect(await status).toMatchObject({ connected: true });
  await unheard.controllerRegistry.drain();
  const refused = await statusAt(unheard, "unheard").catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(TaskNotSent);
  expect(refused).toMatchObject({ key: "MACHINE_UNREACHABLE", retryAfterS: 1 });
  session.close();
  await unheard.close();
});
