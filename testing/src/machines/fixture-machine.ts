import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import {
  type InstanceSpec,
  InstanceSpecSchema,
  Lane,
  TaskClass,
  type TaskResult,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, afterEach, beforeEach, expect } from "vitest";
import { type FakeController, startFakeController } from "../platform/fake-controller.ts";
import { startFixtureKeeper } from "./fixture-keeper.ts";
import { freePorts } from "../platform/free-ports.ts";

type SpecChange = MessageInitShape<typeof InstanceSpecSchema>;

/** Header of every task for the machine. */
export const taskHeader = {
  ownerId: "s-1",
  generation: 1n,
  term: 1n,
  lane: Lane.CONTROL,
  class: TaskClass.QUICK,
};

/** The real keeper and agent on a new directory for each test, with one fake controller for all tests of a file. */
export interface FixtureMachine {
  readonly controller: FakeController;
  /** Enrolls, starts, and waits for the agent's hello. */
  start(): Promise<void>;
  startKeeper(): void;
  keeper(): ChildProcess;
  /** Writes an enrollment to the machine and returns its token, which the controller accepts. */
  writeEnrollment(token?: string, fingerprint?: string): string;
  /** Path of a file of the machine's state. */
  file(name: string): string;
  specOf(change?: SpecChange): InstanceSpec;
  /** Converges the agent's instance to this spec, and waits for the result. */
  converge(change?: SpecChange): Promise<TaskResult>;
  /** Pids of the machine's processes with an argument that ends with `text`. */
  pidsOf(text: string): number[];
  enginePids(): number[];
  agentPids(): number[];
  lastObservation(): InstanceObservation | undefined;
  /** Waits for an observation; earlier ones count. */
  observed(matches: (observation: InstanceObservation) => boolean): Promise<InstanceObservation>;
  /** Log of all processes of the machine. */
  log(): string;
}

/** To be called at the top of a test file: sets up and removes what each test needs. */
export async function openFixtureMachine(): Promise<FixtureMachine> {
  const controller = await startFakeController();
  let directory: string;
  let keeper: ChildProcess | undefined;
  let port: number;

  /** Pids on the host of the fixture's processes with an argument that ends with `text`. */
  function pidsOf(text: string): number[] {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => {
        try {
          const command = readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
          const running = !readFileSync(`/proc/${pid}/stat`, "latin1").includes(") Z ");
          const direct = command[0]?.endsWith("node") && command.some((word) => word.endsWith(text));
          return running && direct && namesDirectory(pid, command);
        } catch {
          return false;
        }
      });
  }

  function namesDirectory(pid: number, command: readonly string[]): boolean {
    return command.join(" ").includes(directory) || readFileSync(`/proc/${pid}/environ`, "latin1").includes(directory);
  }

  function forgetFrames(): void {
    const { hellos, results, observations, serials, renewals, enrollments } = controller;
    for (const list of [hellos, results, observations, serials, renewals, enrollments]) list.length = 0;
  }

  const machine: FixtureMachine = {
    controller,
    async start() {
      machine.writeEnrollment();
      machine.startKeeper();
      await expect.poll(() => controller.hellos.length, { interval: 10, timeout: 60_000 }).toBeGreaterThan(0);
    },
    startKeeper() {
      keeper = startFixtureKeeper(directory);
    },
    keeper() {
      if (keeper === undefined) throw new Error("no keeper was started");
      return keeper;
    },
    writeEnrollment(token = randomBytes(16).toString("hex"), fingerprint = controller.caFingerprint) {
      controller.tokens.add(token);
      const enrollment = {
        installation_id: "test",
        machine_id: "m-1",
        controllers: [controller.address],
        ca_fingerprint: fingerprint,
        token,
      };
      // An agent without one polls for it.
      const file = machine.file("enrollment.json");
      writeFileSync(`${file}.new`, JSON.stringify(enrollment), { mode: 0o600 });
      renameSync(`${file}.new`, file);
      return token;
    },
    file: (name) => join(directory, name),
    specOf: (change = {}) =>
      create(InstanceSpecSchema, {
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
      }),
    converge(change = {}) {
      const instance = machine.specOf(change);
      const { generation, term } = instance;
      const input = { case: "convergeInstance" as const, value: { instance } };
      return controller.perform({ ...taskHeader, generation, term, input });
    },
    pidsOf,
    enginePids: () => pidsOf("fixture-engine.ts"),
    agentPids: () => pidsOf("fixture-agent.ts"),
    lastObservation: () => controller.observations.at(-1),
    async observed(matches) {
      await expect.poll(() => controller.observations.some(matches)).toBe(true);
      return controller.observations.find(matches) as InstanceObservation;
    },
    log() {
      const names = existsSync(machine.file("log")) ? readdirSync(machine.file("log")) : [];
      return names.map((name) => readFileSync(join(machine.file("log"), name), "utf8")).join("\n");
    },
  };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "agent-"));
    controller.lifetimes = { identityMs: 3_600_000, serverMs: 3_600_000 };
    controller.acknowledges = true;
    controller.dropsEnrollmentResponses = false;
    controller.heartbeatIntervalMs = 5_000;
    forgetFrames();
    [port = 0] = await freePorts(1);
  });
  afterEach(async (context) => {
    keeper?.kill("SIGKILL");
    keeper = undefined;
    if (context.task.result?.state === "fail") console.log(machine.log());
    // A remaining agent would send a hello in the next test.
    await expect
      .poll(() => ["fixture-agent.ts", "fixture-engine.ts", "fixture-process.ts"].flatMap(pidsOf))
      .toEqual([]);
    controller.cut();
    await rm(directory, { recursive: true, force: true, maxRetries: 5 });
  });
  afterAll(() => controller.close());
  return machine;
}
