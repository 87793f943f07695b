import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { InstanceSpecSchema, Lane, TaskClass } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type ControllerEnd, startControllerEnd } from "../../test/support/controller-end.ts";
import { ask } from "../../test/support/fixture-driver.ts";

let controller: ControllerEnd;
let directory: string;
let keeper: ChildProcess;
let nextPort = 21_000 + (process.pid % 5_000) * 4;
let port: number;

type SpecChange = MessageInitShape<typeof InstanceSpecSchema>;

function specOf(change: SpecChange = {}) {
  return create(InstanceSpecSchema, {
    serviceId: "s-1",
    nodeId: "n-1",
    engine: "fixture",
    version: "1",
    generation: 1n,
    term: 1n,
    running: true,
    storageBytes: 1n << 40n,
    address: "127.0.0.1",
    port,
    ...change,
  });
}

const header = { ownerId: "s-1", generation: 1n, term: 1n, lane: Lane.CONTROL, class: TaskClass.QUICK };

function converge(change: SpecChange = {}) {
  const instance = specOf(change);
  const { generation, term } = instance;
  return controller.perform({ ...header, generation, term, input: { case: "convergeInstance", value: { instance } } });
}

function startKeeper(): void {
  keeper = spawn(process.execPath, [join(import.meta.dirname, "../keeper/main.ts")], {
    env: {
      PATH: process.env["PATH"],
      HOLDFAST_MACHINE_ID: "m-1",
      HOLDFAST_STATE_DIR: directory,
      HOLDFAST_RUN_DIR: join(directory, "run"),
      HOLDFAST_DATA_DIR: join(directory, "data"),
      HOLDFAST_AGENT_MAIN: join(import.meta.dirname, "../../test/support/fixture-agent.ts"),
    },
    stdio: "ignore",
  });
}

function writeEnrollment(token = randomBytes(16).toString("hex"), fingerprint = controller.caFingerprint): string {
  controller.tokens.add(token);
  const enrollment = {
    installation_id: "test",
    machine_id: "m-1",
    controllers: [controller.address],
    ca_fingerprint: fingerprint,
    token,
  };
  writeFileSync(join(directory, "enrollment.json"), JSON.stringify(enrollment), { mode: 0o600 });
  return token;
}

/** Host's pids of processes whose command line has this. */
function pidsOf(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
        const running = !readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z ");
        const direct = command[0]?.endsWith("node") && command.some((word) => word.endsWith(text));
        return running && direct && readFileSync(`/proc/${pid}/environ`, "latin1").length >= 0 && ours(pid, command);
      } catch {
        return false;
      }
    });
}

function ours(pid: number, command: string[]): boolean {
  return command.join(" ").includes(directory) || readFileSync(`/proc/${pid}/environ`, "latin1").includes(directory);
}

const enginePids = () => pidsOf("fixture-engine.ts");
const agentPids = () => pidsOf("fixture-agent.ts");
const lastObservation = () => controller.observations.at(-1);

async function observed(matches: (observation: InstanceObservation) => boolean): Promise<InstanceObservation> {
  await expect.poll(() => controller.observations.some(matches)).toBe(true);
  return controller.observations.find(matches) as InstanceObservation;
}

function forgetFrames(): void {
  for (const list of [
    controller.hellos,
    controller.results,
    controller.observations,
    controller.serials,
    controller.renewals,
  ]) {
    list.length = 0;
  }
}

beforeAll(async () => {
  controller = await startControllerEnd();
});
afterAll(() => controller.close());

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "agent-"));
  controller.lifetimes = { identityMs: 3_600_000, serverMs: 3_600_000 };
  controller.acknowledges = true;
  controller.enrollments.length = 0;
  forgetFrames();
  port = nextPort++;
});
afterEach(async (context) => {
  keeper.kill("SIGKILL");
  if (context.task.result?.state === "fail") console.log(agentLog());
  await expect.poll(() => enginePids().length).toBe(0);
  controller.cut();
  await rm(directory, { recursive: true, force: true, maxRetries: 5 });
});

function agentLog(): string {
  const names = readdirSync(join(directory, "log"));
  return names.map((name) => readFileSync(join(directory, "log", name), "utf8")).join("\n");
}

async function startMachine(): Promise<void> {
  writeEnrollment();
  startKeeper();
  await expect.poll(() => controller.hellos.length, { interval: 10, timeout: 60_000 }).toBe(1);
}

describe("enrolment", () => {
  test("spends the token once and keeps key and certificate to itself", async () => {
    await startMachine();
    expect(controller.enrollments).toEqual(["m-1"]);
    expect(statSync(join(directory, "identity.json")).mode & 0o777).toBe(0o600);
    controller.cut();
    await expect.poll(() => controller.hellos.length).toBe(2);
    expect(controller.enrollments).toEqual(["m-1"]);
    expect(controller.hellos[0]?.bootId).toBe(controller.hellos[1]?.bootId);
  });

  test("sends the token to nobody whose authority is not the one of the enrolment", async () => {
    const token = writeEnrollment(undefined, "00".repeat(32));
    startKeeper();
    await expect.poll(() => agentLog()).toContain("has not the authority of the enrolment");
    expect(controller.tokens.has(token)).toBe(true);
    expect(controller.enrollments).toEqual([]);
  });

  test("uses a fresh enrolment, and the certificate of before when that is refused", async () => {
    await startMachine();
    writeEnrollment();
    controller.cut();
    await expect.poll(() => controller.enrollments.length).toBe(2);
    const spent = writeEnrollment();
    controller.tokens.delete(spent);
    const { length } = controller.hellos;
    controller.cut();
    await expect.poll(() => controller.hellos.length).toBeGreaterThan(length);
    expect(controller.enrollments.length).toBe(2);
  });

  test("renews its certificate over and over, each session with the next one, while the engine stays", async () => {
    controller.lifetimes = { identityMs: 3_000, serverMs: 3_000 };
    await startMachine();
    await converge();
    const [engine] = enginePids();
    const first = (await ask({ spec: specOf() }, "read", AbortSignal.timeout(1_000))).certificate;
    await expect.poll(() => new Set(controller.serials).size).toBeGreaterThanOrEqual(3);
    await expect.poll(() => controller.renewals.filter((kind) => kind === "server").length).toBeGreaterThanOrEqual(3);
    expect(controller.enrollments).toEqual(["m-1"]);
    expect(enginePids()).toEqual([engine]);
    const now = await ask({ spec: specOf() }, "read", AbortSignal.timeout(1_000));
    expect(now.certificate).not.toBe(first);
    expect(lastObservation()?.state).toBe("running");
  });
});

describe("the instance", () => {
  beforeEach(startMachine);

  test("goes from nothing to running, stopped and running again", async () => {
    expect((await converge()).output.case).toBe("convergeInstance");
    expect(await observed(({ state }) => state === "running")).toMatchObject({ generation: 1n, serviceId: "s-1" });
    await observed(({ checks }) =>
      ["liveness", "storage", "certificate"].every((name) =>
        checks.some((check) => check.name === name && check.status === "healthy"),
      ),
    );
    expect((await converge({ generation: 2n, running: false })).failure).toBeUndefined();
    expect(lastObservation()?.state).not.toBe("running");
    await observed(({ state, generation }) => state === "stopped" && generation === 2n);
    expect(enginePids()).toEqual([]);
    await converge({ generation: 3n });
    await observed(({ state, generation }) => state === "running" && generation === 3n);
  });

  test("takes new settings without a restart, and restarts when that is asked for", async () => {
    await converge();
    const [before] = enginePids();
    await converge({ generation: 2n, parameters: { color: "red" } });
    await observed(({ effectiveParameters }) => effectiveParameters["color"] === "red");
    expect(enginePids()).toEqual([before]);
    const result = await controller.perform({
      ...header,
      generation: 2n,
      input: { case: "restartInstance", value: { nodeId: "n-1", restartCount: 1n } },
    });
    expect(result.output.case).toBe("restartInstance");
    await observed(({ restartCount, state }) => restartCount === 1n && state === "running");
    expect(enginePids()).not.toEqual([before]);
    const [after] = enginePids();
    await converge({ generation: 3n, parameters: { color: "red" } });
    expect(enginePids()).toEqual([after]);
  });

  test("tells no settings before what the engine says of them, nor what it said before", async () => {
    await converge();
    await converge({ generation: 2n, parameters: { slow_answer_ms: "1000" } });
    // The look that follows has its answer already and comes last.
    const result = await converge({ generation: 3n, parameters: { at_start: "2" } });
    expect(result.output.value).toMatchObject({ pendingRestart: ["at_start"] });
    await sleep(1_500);
    const told = controller.observations.filter(({ generation }) => generation === 3n);
    expect(told.length).toBeGreaterThan(0);
    for (const { pendingRestart, effectiveParameters } of told) {
      expect([pendingRestart, effectiveParameters]).toEqual([["at_start"], {}]);
    }
  });

  test("takes back a parameter that keeps the engine from starting, in the engine's words", async () => {
    await converge({ parameters: { color: "red" } });
    const change = { generation: 2n, parameters: { color: "blue", broken: "yes" }, restartCount: 1n };
    const result = await converge(change);
    expect(result.output.value).toMatchObject({ rejected: { broken: expect.stringContaining("cannot be yes") } });
    const held = await observed(
      ({ state, rejectedParameters }) => state === "running" && "broken" in rejectedParameters,
    );
    expect(held.generation).toBe(2n);
    const { parameters } = await ask({ spec: specOf() }, "read", AbortSignal.timeout(1_000));
    expect(parameters).toEqual({ color: "blue" });
    expect((await converge({ ...change, generation: 3n, parameters: { color: "blue" } })).output.value).toMatchObject({
      rejected: {},
    });
  });

  test("starts an engine again that crashed, without a controller too", async () => {
    await converge();
    const [before] = enginePids();
    process.kill(before as number, "SIGKILL");
    await expect.poll(() => enginePids().length === 1 && enginePids()[0] !== before).toBe(true);
    await observed(({ state, reason }) => state === "starting" && reason.includes("started again"));
  });

  test("leaves an engine that takes long to start alone, and a stop in the meantime wins", async () => {
    const slow = converge({ parameters: { slow_start_ms: "60000" } });
    await observed(({ state }) => state === "starting");
    const stopped = await converge({ generation: 2n, running: false });
    expect(stopped.failure).toBeUndefined();
    expect((await slow).failure?.code).toBe("superseded");
    await observed(({ state }) => state === "stopped");
  });

  test("says in words why it cannot be", async () => {
    const words = "This machine's image has no fixture 9 that runs: Nothing is installed at /fixture/9.";
    expect((await converge({ version: "9" })).failure?.message).toBe(words);
    await observed(({ state, reason }) => state === "failed" && reason === words);
  });

  test("tells of an engine that takes no write after two misses", async () => {
    await converge();
    await converge({ generation: 2n, parameters: { deaf: "yes" } });
    const unhealthy = await observed(({ checks }) =>
      checks.some(({ name, status }) => name === "liveness" && status === "unhealthy"),
    );
    expect(unhealthy.state).toBe("running");
  });

  test("survives kill -9 of the agent: the engine stays, is adopted and not started twice", async () => {
    await converge();
    const [engine] = enginePids();
    const { sessionId } = controller.hellos.at(-1) ?? {};
    for (const pid of agentPids()) process.kill(pid, "SIGKILL");
    await expect.poll(() => controller.hellos.at(-1)?.sessionId !== sessionId).toBe(true);
    controller.observations.length = 0;
    await observed(({ state }) => state === "running");
    expect(enginePids()).toEqual([engine]);
    expect((await converge({ generation: 2n })).failure).toBeUndefined();
    expect(enginePids()).toEqual([engine]);
  });

  test("is gone as a whole with its keeper, and comes back from what is on disk", async () => {
    await converge();
    keeper.kill("SIGKILL");
    await expect.poll(() => enginePids().length + agentPids().length).toBe(0);
    const { bootId } = controller.hellos.at(-1) ?? {};
    startKeeper();
    await expect.poll(() => controller.hellos.at(-1)?.bootId !== bootId).toBe(true);
    controller.observations.length = 0;
    await observed(({ state }) => state === "running");
  });

  test("stops in order when the keeper is told to end", async () => {
    await converge();
    keeper.kill("SIGTERM");
    await expect.poll(() => keeper.exitCode).toBe(0);
    expect(agentLog()).toContain("shutting down");
    startKeeper();
  });
});

describe("tasks", () => {
  beforeEach(startMachine);

  test("an older term is refused, over a restart of the agent too", async () => {
    await converge({ term: 5n });
    const stale = () => converge({ term: 4n, generation: 2n });
    expect((await stale()).failure?.code).toBe("stale_term");
    for (const pid of agentPids()) process.kill(pid, "SIGKILL");
    await expect.poll(() => controller.hellos.length).toBe(2);
    expect(controller.hellos[1]?.terms["s-1"]).toBe(5n);
    expect((await stale()).failure?.code).toBe("stale_term");
  });

  test("an older generation of the same kind is superseded", async () => {
    await converge({ generation: 3n });
    expect((await converge({ generation: 2n })).failure?.code).toBe("superseded");
  });

  test("a durable task that comes again gets the recorded result, and results are sent until they are acknowledged", async () => {
    await converge();
    controller.acknowledges = false;
    const user = { username: "u", role: "readonly", verifier: "v" };
    const task = {
      ...header,
      id: "task-1",
      class: TaskClass.DURABLE,
      input: { case: "putEngineUser" as const, value: { user } },
    };
    expect((await controller.perform(task)).output).toMatchObject({ case: "putEngineUser", value: { changed: true } });
    for (const pid of agentPids()) process.kill(pid, "SIGKILL");
    await expect.poll(() => controller.hellos.length).toBe(2);
    expect(controller.hellos[1]?.openTasks).toEqual(["task-1"]);
    const sent = () => controller.results.filter(({ taskId }) => taskId === "task-1").length;
    await expect.poll(sent).toBe(2);
    controller.acknowledges = true;
    // The engine is not asked: this input would be refused.
    const changed = { ...task.input, value: { user: { ...user, username: "bad" } } };
    expect((await controller.perform({ ...task, input: changed })).failure).toBeUndefined();
    controller.cut();
    await expect.poll(() => controller.hellos.length).toBe(3);
    expect(controller.hellos[2]?.openTasks).toEqual([]);
  });

  test("the engine's refusals and what it does not have are told apart", async () => {
    await converge();
    const put = { case: "putEngineUser" as const, value: { user: { username: "bad", role: "admin", verifier: "v" } } };
    expect((await controller.perform({ ...header, input: put })).failure).toMatchObject({
      code: "engine_refused",
      message: "role bad is reserved",
    });
    const list = { case: "listEngineDatabases" as const, value: {} };
    expect((await controller.perform({ ...header, input: list })).failure?.code).toBe("not_supported");
  });

  test("a task ends at its deadline and when it is cancelled, and holds no other lane up", async () => {
    const slow = {
      case: "convergeInstance" as const,
      value: { instance: specOf({ parameters: { slow_start_ms: "60000" } }) },
    };
    const late = await controller.perform({ ...header, deadline: timestampFromMs(Date.now() + 300), input: slow });
    expect(late.failure?.code).toBe("deadline_exceeded");
    const cancelled = controller.perform({ ...header, id: "to-cancel", input: slow });
    controller.send({ case: "cancelTask", value: { taskId: "to-cancel" } });
    expect((await cancelled).failure?.code).toBe("cancelled");
    const quick = await controller.perform({ ...header, lane: Lane.QUERY, input: { case: "readLogs", value: {} } });
    expect(quick.output.case).toBe("readLogs");
  });

  test("a payload of 30 MB is copied with its checksum, and a wrong one is refused", async () => {
    const bytes = randomBytes(30 << 20);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    controller.payloads.set("big", bytes);
    const copy = (reference: { id: string; sizeBytes: bigint; sha256: string }) =>
      controller.perform({ ...header, lane: Lane.BULK, input: { case: "copyPayload", value: { payload: reference } } });
    const reference = { id: "big", sizeBytes: BigInt(bytes.byteLength), sha256 };
    const result = await copy(reference);
    expect(result.output.value).toMatchObject({ payload: { sha256 } });
    expect(controller.progress.length).toBeGreaterThan(5);
    expect((await copy({ ...reference, sha256: "00".repeat(32) })).failure?.code).toBe("payload_corrupt");
  });

  test("logs are read by position and level", async () => {
    await converge();
    const read = async (value: { cursor?: string; level?: string; limit?: number }) => {
      const result = await controller.perform({ ...header, lane: Lane.QUERY, input: { case: "readLogs", value } });
      if (result.output.case !== "readLogs") throw new Error(JSON.stringify(result.failure));
      return result.output.value;
    };
    const first = await read({ limit: 1 });
    expect(first).toMatchObject({
      hasMore: true,
      lines: [{ component: "engine", level: "info", message: "starting" }],
    });
    const second = await read({ cursor: first.nextCursor });
    expect(second.lines.map(({ message }) => message)).toEqual(["ready"]);
    expect((await read({ level: "error" })).lines).toEqual([]);
    await converge({ generation: 2n, parameters: { a: "b" } });
    expect((await read({ cursor: second.nextCursor })).lines.map(({ message }) => message)).toEqual(["reloaded"]);
  });
});
