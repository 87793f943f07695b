import { randomBytes, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { type Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { containersDirectory } from "@holdfast/agent/workload/app/containers.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { groupTrees, removeGroups } from "@holdfast/compute/local/control-groups.ts";
import { detectAbilities } from "@holdfast/compute/local/host-abilities.ts";
import { layoutOf, machineDataDirectory } from "@holdfast/compute/local/machine-paths.ts";
import { readStorageTiers } from "@holdfast/compute/local/storage-tiers.ts";
import { createProcessProvider } from "@holdfast/compute/process/process-provider.ts";
import { readRun } from "@holdfast/compute/process/machine-run.ts";
import { stopAllMachines } from "@holdfast/compute/process/stop-machine.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import {
  type AppSpecSchema,
  Lane,
  ReadLogsSchema,
  type Release,
  ReleaseSchema,
  TaskClass,
  type TaskResult,
  WorkloadSpecSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type FakeController, startFakeController } from "../platform/fake-controller.ts";
import type { ImageRegistry } from "../servers/image-registry.ts";
import { waitUntil } from "../wait-until.ts";
import { testMachineSpec } from "./machine-spec.ts";
import { testCheckout } from "./process-machines.ts";

/** A machine of the process provider for an app, with its keeper and agent, under a fake controller. Needs root. */
export interface AppMachine {
  readonly controller: FakeController;
  /** Address of the machine, on which its front listens at `port`. */
  readonly address: string;
  readonly port: number;
  /** Memory of its plan. */
  readonly memoryBytes: number;
  /** Converges the machine to the app, a generation later each time. */
  converge(app: MessageInitShape<typeof AppSpecSchema>, change?: WorkloadChange): Promise<TaskResult>;
  /** Body of a response of the app; throws for another status than 200. */
  get<T = AppAnswer>(path: string, agent?: Agent): Promise<T>;
  /** Waits for an observation; earlier ones count until `forget`. */
  observed(matches: (observation: InstanceObservation) => boolean): Promise<InstanceObservation>;
  forget(): void;
  /** The newest lines of the app's log. */
  logLines(): Promise<string[]>;
  /** Names in a directory of the machine's containers. */
  filesOf(name: string): Promise<string[]>;
  /** Host pids of the machine's processes with this text in their command line. */
  pidsOf(text: string): number[];
  agentPids(): number[];
  /** Kills the processes with this text in their command line. */
  kill(text: string): void;
  /** Kills the agent; the keeper starts the next one. */
  killAgent(): void;
  /** Kills the machine with all its processes, as the end of its host does, and starts it again. */
  reboot(): Promise<void>;
  /**
   * Creates a control group of this name where the machine's containers look for theirs, as its host may have one. It
   * is removed with the machine.
   */
  addControlGroup(name: string): Promise<void>;
  /** Resolves once the agent has a session since the last start of the machine. */
  connected(): Promise<void>;
  /** Logs of the machine, for the message of a failed test. */
  log(): string;
  remove(): Promise<void>;
}

/** Response of the program of test images (app-program.mjs) to `/`. */
export interface AppAnswer {
  readonly release: string;
  /** Value of a variable of the image. */
  readonly note: string;
  readonly user: number;
  readonly pid: number;
}

export type ReleaseChange = Omit<MessageInitShape<typeof ReleaseSchema>, "$typeName" | "$unknown">;
type WorkloadChange = Omit<MessageInitShape<typeof WorkloadSpecSchema>, "workload" | "$typeName" | "$unknown">;

/** A release whose image is in the registry, with its id in a variable. */
export function testRelease(registry: ImageRegistry, change: ReleaseChange): Release {
  return create(ReleaseSchema, {
    registryAuthorities: registry.authorities,
    registryUsername: registry.username,
    registryPassword: registry.password,
    environment: [{ name: "RELEASE", value: change.id ?? "" }],
    port: 8_080,
    healthCheckPath: "/health",
    startTimeoutSeconds: 60,
    drainSeconds: 10,
    ...change,
  });
}

const { signal } = new AbortController();
const port = 8_090;

export async function startAppMachine(loopbackBlock: string): Promise<AppMachine> {
  const controller = await startFakeController();
  const directory = mkdtempSync(join(tmpdir(), "holdfast-app-"));
  const provider = createProcessProvider({
    directory,
    loopbackBlock,
    imagesDir: imagesDirectory(process.env),
    checkout: testCheckout,
    node: process.execPath,
    abilities: await detectAbilities(),
    environment: process.env,
    tiers: readStorageTiers(["maxiops"]),
    clock: systemClock,
    log: silentLog,
  });
  const spec = testMachineSpec({ id: `m-${randomUUID()}`, engine: "app", version: "1", diskBytes: 2 * 1024 ** 3 });
  const paths = layoutOf(directory).machine(spec.id);
  const { address } = await provider.create(spec, signal);
  let generation = 0n;

  async function start(): Promise<void> {
    const token = randomBytes(16).toString("hex");
    controller.tokens.add(token);
    controller.hellos.length = 0;
    const { caFingerprint } = controller;
    const enrollment = { installationId: "test", controllers: [controller.address], caFingerprint, token };
    await provider.start(spec.id, enrollment, signal);
  }

  async function connected(): Promise<void> {
    await waitUntil("the agent is connected", () => controller.hellos.length > 0, { describe: log });
  }

  function log(): string {
    const logs = join(paths.state, "log");
    const names = existsSync(logs) ? readdirSync(logs) : [];
    return [paths.log, ...names.map((name) => join(logs, name))]
      .map((path) => `${path}\n${existsSync(path) ? readFileSync(path, "utf8") : ""}`)
      .join("\n");
  }

  function pidsOf(text: string): number[] {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ").includes(text) && isInside(pid);
        } catch {
          // The entry is not a pid, or its process ended during the scan.
          return false;
        }
      });
  }

  /** An agent runs from the checkout until its code is bundled. */
  const agentPids = () => ["/agent/src/main.ts", "/holdfast/code/main.mjs"].flatMap(pidsOf);

  /** True for a process of the machine: its control groups have the machine's id. */
  function isInside(pid: number): boolean {
    return readFileSync(`/proc/${pid}/cgroup`, "latin1").includes(spec.id);
  }

  /** Control groups that this test created, each after those inside it. */
  const ownGroups: string[] = [];

  await start();
  await connected();
  return {
    controller,
    address,
    port,
    memoryBytes: spec.plan.memoryBytes,
    converge(app, change = {}) {
      generation += 1n;
      const workload = create(WorkloadSpecSchema, {
        workload: { case: "app", value: { port, ...app } },
        ownerId: "app-1",
        nodeId: "n-1",
        generation,
        term: 1n,
        running: true,
        vcpu: 1,
        memoryBytes: BigInt(spec.plan.memoryBytes),
        storageBytes: BigInt(spec.diskBytes),
        address,
        ...change,
      });
      const input = { case: "convergeInstance" as const, value: { workload } };
      const header = { ownerId: "app-1", generation, term: 1n, lane: Lane.CONTROL, class: TaskClass.QUICK };
      return controller.perform({ ...header, input });
    },
    get<T>(path: string, agent: Agent | false = false) {
      const { promise, resolve, reject } = Promise.withResolvers<T>();
      const call = request({ host: address, port, path, agent }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.once("end", () => {
          if (response.statusCode === 200) resolve(JSON.parse(text) as T);
          else reject(new Error(`${path}: ${response.statusCode}`));
        });
        response.once("error", reject);
      });
      call.once("error", reject);
      call.end();
      return promise;
    },
    async observed(matches) {
      await waitUntil("the machine reports it", () => controller.observations.some(matches), {
        describe: () => `${JSON.stringify(controller.observations.at(-1)?.app)} ${log()}`,
      });
      return controller.observations.find(matches) as InstanceObservation;
    },
    forget: () => controller.observations.splice(0),
    async logLines() {
      const input = { case: "readLogs" as const, value: create(ReadLogsSchema, { limit: 1_000, newest: true }) };
      const header = { ownerId: "app-1", generation, term: 1n, lane: Lane.QUERY, class: TaskClass.QUICK };
      const { output } = await controller.perform({ ...header, input });
      return output.case === "readLogs" ? output.value.lines.map(({ message }) => message) : [];
    },
    async filesOf(name) {
      const pid = (await readRun(paths.run))?.init?.pid;
      return readdir(join(`/proc/${pid}/root`, containersDirectory(machineDataDirectory), name));
    },
    pidsOf,
    agentPids,
    kill: (text) => killAll(pidsOf(text)),
    killAgent() {
      const pids = agentPids();
      if (pids.length === 0) throw new Error("no agent runs");
      controller.hellos.length = 0;
      killAll(pids);
    },
    async reboot() {
      const pid = (await readRun(paths.run))?.init?.pid;
      if (pid !== undefined) process.kill(pid, "SIGKILL");
      await waitUntil("the machine ended", async () => (await provider.get(spec.id, signal))?.state === "stopped");
      await start();
    },
    async addControlGroup(name) {
      const pid = (await readRun(paths.run))?.init?.pid ?? 0;
      const [mounts, ownPaths] = ["/proc/self/mountinfo", `/proc/${pid}/cgroup`].map((path) =>
        readFileSync(path, "utf8"),
      );
      // The single tree of version 2, also on a host whose machines are limited by groups of version 1.
      const besideMachine = groupTrees(mounts ?? "", ownPaths ?? "").get("");
      if (besideMachine === undefined) throw new Error("this host has no control groups of version 2");
      const group = join(besideMachine, `holdfast-${spec.id}`);
      if (!existsSync(group)) {
        mkdirSync(group);
        ownGroups.push(group);
        // The keeper too, which starts the containers, and is not the machine's first process.
        for (const each of pidsOf("")) writeFileSync(join(group, "cgroup.procs"), String(each));
      }
      mkdirSync(join(group, name));
      ownGroups.unshift(join(group, name));
    },
    connected,
    log,
    async remove() {
      await provider.close();
      await stopAllMachines(directory, 0);
      for (const group of ownGroups) await waitUntil("the control group is empty", () => removeGroups([group]));
      await provider.destroy(spec.id, signal);
      await controller.close();
      await rm(directory, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}

function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      // It ended with another one of them.
      if (!hasCode(error, "ESRCH")) throw error;
    }
  }
}
