import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createDisk, diskMountOptions } from "@holdfast/compute/local/data-disk.ts";
import { detectGroups, limitMachine, removeGroups } from "@holdfast/compute/local/control-groups.ts";
import type { Program } from "@holdfast/image/catalog.ts";
import { findSoftware, imagesDirectory } from "@holdfast/image/node-image.ts";
import { programPid } from "@holdfast/image/in-image.ts";
import { InstanceSpecSchema, Lane, TaskClass, type TaskResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { bundleAgentTo } from "./agent-code.ts";
import { type FakeController, startFakeController } from "../platform/fake-controller.ts";
import type { EngineEndpoint } from "../engines/engine-clients.ts";
import { asRoot } from "../platform/platform-software.ts";
import { hasSoftware } from "../engines/required-recipes.ts";
import { freePorts } from "../platform/free-ports.ts";
import { waitUntil } from "../wait-until.ts";

const run = promisify(execFile);

type SpecChange = Omit<MessageInitShape<typeof InstanceSpecSchema>, "$typeName" | "$unknown">;

/**
 * Keeper, agent and engine of one machine, with /usr and /etc of the node image, under a fake controller. Needs root.
 */
export interface AgentMachine {
  readonly controller: FakeController;
  readonly directory: string;
  /** Reason why its memory is not limited; undefined when it is. */
  readonly unlimited: string | undefined;
  /** CPU time in ms of all processes of the machine so far, as its host counts it; 0 where it does not. */
  cpuUsedMs(): number;
  /** The engine's endpoint for users, from its first certificate on. */
  readonly endpoint: EngineEndpoint;
  /** Kills all processes of the machine, and starts it again with a new enrollment. */
  restart(): Promise<void>;
  /** Kills all processes of the machine; resolves when none remains. */
  kill(): Promise<void>;
  /** Converges the machine's instance to these settings, a generation later each time. */
  converge(change?: SpecChange): Promise<TaskResult>;
  /** The host's pid of the keeper. */
  keeperPid(): number;
  /** Runs a program on the host as the engine's user, from outside of its namespaces; resolves with its output. */
  asEngine(argv: readonly string[]): Promise<string>;
  /** Header of a task with the newest generation. */
  readonly header: { ownerId: string; generation: bigint; term: bigint };
  /** The host's pids of the machine's processes that run this program. */
  pidsOf(program: string): number[];
  /** The processes that run this program of the agent's code: the agent itself, or a backup job. */
  pidsOfCode(program: "main" | "backup"): number[];
  /** Log of agent and engine. */
  log(): string;
  remove(): Promise<void>;
}

export interface AgentMachineOptions {
  readonly engine: Program;
  readonly version: string;
  readonly spec: SpecChange;
  /** Size of the data disk's file system. */
  readonly diskBytes?: number;
  /** True if the machine's data disk is a separate block device, and not memory. */
  readonly diskIsDevice?: boolean;
  /** Limits of memory and CPUs of the machine, where the host can enforce them. */
  readonly memoryBytes?: number;
  readonly vcpu?: number;
  /** Interval of samples; absent: 15 s. */
  readonly sampleIntervalMs?: number;
}

/** Reason why no such machine can run here; undefined when one can. */
export function whyNoAgentMachine(engine: Program, version: string): string | undefined {
  if (!asRoot) return "needs root: namespaces and users of a machine's own";
  return hasSoftware(engine, version) ? undefined : `no image has ${engine} ${version}`;
}

export async function startAgentMachine(options: AgentMachineOptions): Promise<AgentMachine> {
  const { engine, version, diskBytes } = options;
  const root = findSoftware(imagesDirectory(process.env), engine, version)?.image.root ?? "";
  const controller = await startFakeController();
  controller.sampleIntervalMs = options.sampleIntervalMs ?? controller.sampleIntervalMs;
  const directory = await mkdtemp(join(tmpdir(), "agent-"));
  await chmod(directory, 0o755);
  const [port = 0] = await freePorts(1);
  // Ports belong to this test while they are used, and so do the user ids derived from them.
  const uid = 1_800_000_000 + port;
  const agentUid = uid + 100_000;
  const state = join(directory, "state");
  const data = join(directory, "data");
  for (const path of [state, data]) await mkdir(path);
  // The machine's users may not be able to enter the checkout.
  const code = join(directory, "code");
  bundleAgentTo(code);
  const passwd = readFileSync(join(root, "etc/passwd"), "utf8");
  writeFileSync(
    join(directory, "passwd"),
    `${passwd}engine:x:${uid}:${uid}::/:/bin/sh\nagent:x:${agentUid}:${uid}::/:/bin/sh\n`,
  );
  const diskFile = join(directory, "disk.img");
  if (options.diskIsDevice)
    await createDisk(
      { diskFile, dataDirectory: data },
      { kind: "loop", diskBytes: diskBytes ?? 0, uid: null, imageRoot: root, tierDirectory: undefined },
    );
  const ability = await detectGroups();
  const groups =
    options.memoryBytes === undefined
      ? undefined
      : await limitMachine(ability, basename(directory), {
          vcpu: options.vcpu ?? 2,
          memoryBytes: options.memoryBytes,
        });
  let keeper: ChildProcess | undefined;
  let generation = 0n;
  let term = 1n;

  async function enroll(): Promise<void> {
    const token = randomBytes(16).toString("hex");
    controller.tokens.add(token);
    const { address, caFingerprint } = controller;
    const content = { installation_id: "test", machine_id: "m-1", controllers: [address], token };
    const file = join(state, "enrollment.json");
    writeFileSync(file, JSON.stringify({ ...content, ca_fingerprint: caFingerprint }), { mode: 0o600 });
    await chown(file, agentUid, uid);
  }

  function launch(): void {
    const enter = [
      ...(groups?.directories ?? []).map((path) => `echo $$ >${path}/cgroup.procs`),
      `exec unshare --mount --pid --fork --kill-child --mount-proc sh -c '${steps().join(" && ")}'`,
    ].join(" && ");
    keeper = spawn("sh", ["-c", enter], {
      env: {
        PATH: process.env["PATH"],
        HOLDFAST_MACHINE_ID: "m-1",
        HOLDFAST_MACHINE_UID: String(uid),
        HOLDFAST_AGENT_UID: String(agentUid),
        HOLDFAST_STATE_DIR: state,
        HOLDFAST_RUN_DIR: join(directory, "run"),
        HOLDFAST_DATA_DIR: data,
        HOLDFAST_AGENT_MAIN: join(code, "main.mjs"),
        HOLDFAST_CGROUP_DIR: groups === undefined ? "" : "/sys/fs/cgroup",
      },
      stdio: "ignore",
    });
  }

  /** Commands inside the machine's namespaces, up to its keeper. */
  function steps(): string[] {
    const binds = [...(groups?.mounts ?? []), [`${root}/usr`, "/usr"], [`${root}/etc`, "/etc"]];
    return [
      ...binds.map(([from, to]) => `mount --bind ${from} ${to}`),
      `mount --bind ${directory}/passwd /etc/passwd`,
      ...(diskBytes === undefined
        ? []
        : options.diskIsDevice
          ? [`mount -t xfs -o loop,${diskMountOptions} ${diskFile} ${data}`]
          : [`mount -t tmpfs -o size=${diskBytes},uid=${uid},gid=${uid},mode=0700 d ${data}`]),
      // The machine's users can reach node, wherever it is installed.
      `touch ${directory}/node`,
      `mount --bind ${process.execPath} ${directory}/node`,
      `exec ${directory}/node ${join(code, "keeper.mjs")}`,
    ];
  }

  function belongs(pid: number): boolean {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    return [uid, agentUid].some((each) => status.includes(`Uid:\t${each}\t`)) && !status.includes("State:\tZ");
  }

  /** The machine's processes with an accepted command line. */
  function pidsWith(accepts: (words: readonly string[]) => boolean): number[] {
    return readdirSync("/proc")
      .map(Number)
      .filter((pid) => {
        try {
          return belongs(pid) && accepts(readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0"));
        } catch {
          // The entry is not a pid, or its process ended during the scan.
          return false;
        }
      });
  }

  const machine: AgentMachine = {
    controller,
    directory,
    unlimited: ability.version === "none" ? ability.reason : undefined,
    cpuUsedMs() {
      const counting = groups?.mounts.find(([, target]) => target.endsWith("cpuacct"))?.[0];
      if (counting !== undefined) return Number(readFileSync(join(counting, "cpuacct.usage"), "utf8")) / 1e6;
      const [group] = groups?.directories ?? [];
      const text = group === undefined ? "" : readFileSync(join(group, "cpu.stat"), "utf8");
      return Number(/^usage_usec (\d+)$/m.exec(text)?.[1] ?? 0) / 1e3;
    },
    get endpoint() {
      const ca = readFileSync(join(state, "instance/tls/ca.crt"), "utf8");
      return { ca, serverName: "db.local.test", instance: { spec: { address: "127.0.0.1", port } } };
    },
    get header() {
      return { ownerId: "s-1", generation, term };
    },
    async restart() {
      await machine.kill();
      await enroll();
      launch();
    },
    async kill() {
      keeper?.kill("SIGKILL");
      await waitUntil("nothing of the machine runs", () => machine.pidsOf("").length === 0, { everyMs: 10 });
    },
    keeperPid: () => programPid(keeper?.pid ?? 0) ?? 0,
    async asEngine(argv) {
      const user = [`--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--no-new-privs"];
      const { stdout, stderr } = await run("setpriv", [...user, "sh", "-c", '"$@" 2>&1 || :', "sh", ...argv]);
      return stdout + stderr;
    },
    converge(change = {}) {
      generation += 1n;
      term = change.term ?? term;
      const instance = create(InstanceSpecSchema, {
        serviceId: "s-1",
        nodeId: "n-1",
        engine,
        version,
        generation,
        term,
        running: true,
        vcpu: 1,
        memoryBytes: 1n << 30n,
        storageBytes: 1n << 30n,
        allowedCidrs: ["127.0.0.0/8"],
        address: "127.0.0.1",
        port,
        ...options.spec,
        ...change,
      });
      const input = { case: "convergeInstance" as const, value: { instance } };
      return controller.perform({ ...machine.header, lane: Lane.CONTROL, class: TaskClass.QUICK, input });
    },
    pidsOf: (program) => pidsWith(([command = ""]) => command.includes(program)),
    pidsOfCode: (program) => pidsWith((words) => words.includes(join(code, `${program}.mjs`))),
    log() {
      const logs = join(state, "log");
      return (existsSync(logs) ? readdirSync(logs) : [])
        .map((name) => readFileSync(join(logs, name), "utf8"))
        .join("\n");
    },
    async remove() {
      await machine.kill();
      await controller.close();
      if (groups !== undefined) await waitUntil("its groups are empty", () => removeGroups(groups.directories));
      await rm(directory, { recursive: true, force: true, maxRetries: 10 });
    },
  };
  await enroll();
  launch();
  await waitUntil("the agent is connected", () => controller.hellos.length > 0, { describe: machine.log });
  return machine;
}
