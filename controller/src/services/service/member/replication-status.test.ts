import { systemClock } from "@holdfast/common/clock.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runningService } from "../../../../../test/support/controller/service-object.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "../../../../../test/support/controller/test-fleet.ts";
import { helloOf, openSession, type TestSession } from "../../../../../test/support/machines/test-agent.ts";
import { NotAsked } from "#fleet/not-asked.ts";
import { replicationStatus } from "./replication-status.ts";

let installation: TestInstallation;
let one: TestController;
let two: TestController;

beforeAll(async () => {
  installation = await newInstallation();
  one = await startController(installation, "c-1");
  two = await startController(installation, "c-2");
});
afterAll(() => installation?.close());

async function connected(controller: TestController, machineId: string): Promise<TestSession> {
  const session = openSession(controller.dial(await controller.newAgent(machineId)), helloOf(machineId));
  await session.expect("welcome");
  await expect.poll(() => [one, two].every(({ fleet }) => fleet.session(machineId) !== undefined)).toBe(true);
  return session;
}

/** Of a primary on this machine, as this controller tells. */
function statusAt({ fleet }: TestController, machineId: string) {
  const node = { id: machineId, role: "primary", hostname: "db-1.local", zone: "local" } as const;
  const service = runningService({}, { nodes: [node] }, { primaryNodeId: machineId });
  return replicationStatus(service, node, { fleet, clock: systemClock }, new AbortController().signal);
}

const answered = new WeakMap<TestSession, Set<string>>();

async function answer(session: TestSession): Promise<void> {
  const known = answered.get(session) ?? new Set();
  answered.set(session, known);
  const { id } = await session.expect("task", ({ id: next }) => !known.has(next));
  known.add(id);
  const value = { role: "primary", position: "0/1", timeline: 1 };
  session.say({ case: "taskResult", value: { taskId: id, output: { case: "readReplication", value } } });
}

test("a node is asked at whichever controller its stream is", async () => {
  const session = await connected(one, "asked");
  for (const controller of [one, two]) {
    const status = statusAt(controller, "asked");
    await answer(session);
    expect(await status).toMatchObject({ connected: true, position: "0/1" });
  }
  session.close();
});

test("a node that does not answer, or has no stream, is not connected", async () => {
  const session = await connected(one, "mute");
  const told = await Promise.all([statusAt(one, "mute"), statusAt(two, "mute"), statusAt(one, "away")]);
  for (const status of told) expect(status).toMatchObject({ connected: false });
  session.close();
});

test("a node that could not be asked is told to be nothing", async () => {
  const unheard = await startController(installation, "c-unheard", { advertise: "127.0.0.1:1" });
  const session = await connected(unheard, "unheard");
  await expect(statusAt(one, "unheard")).rejects.toThrow("did not answer");
  const status = statusAt(unheard, "unheard");
  await answer(session);
  expect(await status).toMatchObject({ connected: true });
  await unheard.membership.drain();
  const refused = await statusAt(unheard, "unheard").catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(NotAsked);
  expect(refused).toMatchObject({ key: "MACHINE_UNREACHABLE", retryAfterS: 1 });
  session.close();
  await unheard.close();
});
