import type { ChildProcess } from "node:child_process";
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type InstanceSpec, InstanceSpecSchema, ReadLogsSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, expect, onTestFailed, test, vi } from "vitest";
import { machineKind, type MachineObject } from "@holdfast/controller/fleet/machine/machine.ts";
import { keyOf } from "@holdfast/controller/kernel/store/resource.ts";
import { startFixtureKeeper } from "@holdfast/testing/machines/fixture-keeper.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import {
  newInstallation,
  startController,
  type TestController,
  type TestInstallation,
} from "@holdfast/testing/controller/test-fleet.ts";

/**
 * The real keeper and agent with the real fleet of two controllers on a real etcd. Only the engine is the fixture. The
 * certificates live for seconds, so that every test includes renewed streams.
 */
let installation: TestInstallation;
let controllers: TestController[];
let directory: string;
let keeper: ChildProcess;
let port: number;

beforeAll(async () => {
  [port = 0] = await freePorts(1);
  installation = await newInstallation();
  // A certificate is renewed with a third of its life remaining: an agent whose certificate expired would have to
  // enroll, and there is no token for that.
  const lifetimes = { identityMs: 10_000, serverMs: 6_000 };
  controllers = [
    await startController(installation, "c-1", { lifetimes }),
    await startController(installation, "c-2", { lifetimes }),
  ];
  directory = await mkdtemp(join(tmpdir(), "agent-fleet-"));
  await enroll();
  keeper = startFixtureKeeper(directory);
  await vi.waitUntil(() => holder() !== undefined, { timeout: 120_000 });
});
afterAll(async () => {
  keeper?.kill("SIGKILL");
  await installation?.close();
  await rm(directory, { recursive: true, force: true, maxRetries: 10 });
});

/** Writes a new token to the machine, as a provider does. */
async function enroll(): Promise<void> {
  const enrollment = {
    installation_id: "inst-test",
    machine_id: "m-1",
    controllers: controllers.map(({ address }) => address),
    ca_fingerprint: first().authority.fingerprint,
    token: await first().newMachine("m-1"),
  };
  const file = join(directory, "enrollment.json");
  writeFileSync(`${file}.new`, JSON.stringify(enrollment), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

function first(): TestController {
  return controllers[0] as TestController;
}

/** True if every running controller has the session of the machine. */
const seenByAll = () => controllers.every(({ fleet }) => fleet.session("m-1") !== undefined);

/** True if no running controller has a session of the machine. */
const seenByNone = () => controllers.every(({ fleet }) => fleet.session("m-1") === undefined);

/** Id of the controller with the machine's stream, as the first running one sees it. */
function holder(): string | undefined {
  return controllers.at(-1)?.fleet.session("m-1")?.controllerId;
}

function specOf(generation: bigint, change: MessageInitShape<typeof InstanceSpecSchema> = {}): InstanceSpec {
  return create(InstanceSpecSchema, {
    serviceId: "service-of-m-1",
    nodeId: "m-1",
    engine: "fixture",
    version: "1",
    generation,
    term: 1n,
    running: true,
    storageBytes: 1n << 40n,
    address: "127.0.0.1",
    port,
    ...change,
  });
}

function converge(
  controller: TestController,
  generation: bigint,
  change: MessageInitShape<typeof InstanceSpecSchema> = {},
) {
  const input = {
    case: "convergeInstance" as const,
    value: { $typeName: "holdfast.agent.v1.ConvergeInstance" as const, instance: specOf(generation, change) },
  };
  const request = {
    ownerId: "service-of-m-1",
    generation: Number(generation),
    term: 1,
    lane: "control" as const,
    input,
    deadlineMs: 20_000,
  };
  return controller.fleet.run("m-1", request, 20_000);
}

const listLogs = {
  ownerId: "service-of-m-1",
  generation: 1,
  term: 1,
  lane: "query" as const,
  input: { case: "readLogs" as const, value: create(ReadLogsSchema, { limit: 1 }) },
  deadlineMs: 20_000,
};

function agentLog(): string {
  const log = join(directory, "log");
  return readdirSync(log)
    .map((name) => readFileSync(join(log, name), "utf8"))
    .join("\n");
}

/** Number of times that the agent logged this. */
function logged(message: string): number {
  return agentLog().split(message).length - 1;
}

const refusal = "the certificate is not valid any more";

test("an instance is started through either controller, and both see it", async () => {
  onTestFailed(() => console.log(agentLog()));
  for (const [index, controller] of controllers.entries()) {
    expect((await converge(controller, BigInt(index + 1))).failure).toBeUndefined();
  }
  for (const { fleet } of controllers) {
    await expect.poll(() => fleet.observation("m-1")?.instance.state).toBe("running");
  }
});

test("30 MB pass through a task by reference and back while other tasks complete", async () => {
  onTestFailed(() => console.log(agentLog()));
  const { fleet } = controllers.find(({ fleet }) => fleet.streamCount === 1) ?? first();
  const transfer = fleet.probeTransfer("m-1", 30 << 20);
  let responses = 0;
  let going = true;
  const stop = () => {
    going = false;
  };
  transfer.then(stop, stop);
  while (going) {
    await fleet.run("m-1", listLogs, 20_000);
    responses += 1;
  }
  expect((await transfer).sha256).toMatch(/^[0-9a-f]{64}$/);
  // No other task waited for the end of the payload.
  expect(responses).toBeGreaterThan(3);
});

test("no task fails while certificates and streams change, through either controller", async () => {
  onTestFailed(() => console.log(agentLog()));
  const handedOver = () =>
    controllers.flatMap(({ logged }) => logged).filter(({ message }) => message === "agent stream handed over").length;
  const before = handedOver();
  const going = () => handedOver() < before + 2;
  let quick = 0;
  let generation = 3n;
  const durable: string[] = [];
  const many = async ({ fleet }: TestController) => {
    while (going()) {
      expect((await fleet.run("m-1", listLogs, 20_000)).failure).toBeUndefined();
      quick += 1;
    }
  };
  const long = async () => {
    while (going()) {
      generation += 1n;
      const change = { restartCount: generation, parameters: { slow_start_ms: "700" } };
      expect((await converge(first(), generation, change)).failure).toBeUndefined();
    }
  };
  const recorded = async ({ fleet }: TestController) => {
    while (going()) {
      const id = `recorded-${durable.length}`;
      durable.push(id);
      await fleet.submit("m-1", id, listLogs);
      // Time: the rate of the requests.
      await delay(20);
    }
  };
  await Promise.all([...controllers.map(many), long(), recorded(first())]);
  expect(quick).toBeGreaterThan(100);
  const failed = () => durable.filter((id) => first().fleet.task(id)?.status !== "completed");
  await expect.poll(failed).toEqual([]);
});

test("an agent with a rejected certificate enrolls again once a new token is there; the engine stays", async () => {
  onTestFailed(() => console.log(agentLog()));
  const { store } = first();
  const [enrolled, started, refused] = [logged("machine enrolled"), logged("engine started"), logged(refusal)];
  const key = keyOf(machineKind, "m-1");
  const machine = JSON.parse((await store.get(key))?.value ?? "") as MachineObject;
  const certificate = { serial: "00", previousSerial: "", beganAt: 0, expiresAt: 0 };
  const value = JSON.stringify({ ...machine, status: { ...machine.status, certificate } });
  await store.commit({ conditions: [], puts: [{ key, value }], deletes: [] });
  await expect.poll(seenByNone).toBe(true);
  await expect.poll(() => logged(refusal)).toBeGreaterThan(refused);
  await enroll();
  await expect.poll(seenByAll).toBe(true);
  expect((await converge(first(), 500n)).failure).toBeUndefined();
  expect(logged("machine enrolled")).toBe(enrolled + 1);
  expect(logged("engine started")).toBe(started);
});

test("an agent that died after its token was used enrolls with the next one", async () => {
  onTestFailed(() => console.log(agentLog()));
  keeper.kill("SIGKILL");
  await expect.poll(seenByNone).toBe(true);
  // A running agent could write it again.
  rmSync(join(directory, "identity.json"));
  keeper = startFixtureKeeper(directory);
  await expect.poll(() => logged("the enrollment is not valid")).toBeGreaterThan(0);
  await enroll();
  await expect.poll(seenByAll).toBe(true);
  expect((await converge(first(), 600n)).failure).toBeUndefined();
});

test("the other controller takes over when one stops, without an effect on the engine", async () => {
  onTestFailed(() => console.log(agentLog()));
  const index = holder() === "c-1" ? 0 : 1;
  const [stopped] = controllers.splice(index, 1);
  await stopped?.close();
  const survivor = first();
  await expect.poll(() => survivor.fleet.session("m-1")?.controllerId).toBe(index === 0 ? "c-2" : "c-1");
  expect((await converge(survivor, 1_000n)).failure).toBeUndefined();
});
