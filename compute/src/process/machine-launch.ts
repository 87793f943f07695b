import { spawn } from "node:child_process";
import { type FileHandle, open, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { ComputeFailure, startFailureSentence } from "../compute-failure.ts";
import type { Isolation } from "../local/host-abilities.ts";
import { readIfExists } from "../local/atomic-file.ts";
import type { MachineGroups } from "../local/control-groups.ts";
import { diskMountOptions } from "../local/data-disk.ts";
import { agentUidOf } from "../local/machine-number.ts";
import { machineDataDirectory, type MachinePaths } from "../local/machine-paths.ts";
import { machineCodeDirectory, type MachineRuntime } from "../local/machine-runtime.ts";
import { stopMachine } from "./stop-machine.ts";

const script = join(import.meta.dirname, "launch-machine.sh");
const runsAlready = 75;
const startTimeoutMs = 30_000;
const maxLogBytes = 1 << 20;
const maxReasonLength = 300;
/** Number of log lines in the cause of a failed start. */
const tailLines = 20;

interface LaunchRequest {
  readonly paths: MachinePaths;
  readonly isolation: Isolation;
  /** Undefined without namespaces, when the machine has the host's root. */
  readonly root: MachineRoot | undefined;
  readonly uid: number | null;
  /** True for a machine that runs containers. */
  readonly hasContainers?: boolean;
  /** True if the file system of /data is smaller than its disk. */
  readonly grow: boolean;
  /** Program and arguments; paths are those inside. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Words before the start command, such as `nice`. */
  readonly prefix?: readonly string[];
  /** True if the caller waits for the machine's end, so that this process must not end before. */
  readonly awaited?: boolean;
}

/** The launcher process of a machine. */
export interface Launched {
  /** Exit status, once no process of the machine remains. */
  readonly ended: Promise<number | null>;
}

/**
 * Starts the machine; resolves when its program is about to start, or when it runs already. The machine is detached: it
 * outlives this controller.
 */
export async function launchMachine(request: LaunchRequest): Promise<Launched> {
  const { paths, root, uid } = request;
  if (root !== undefined) {
    await writeFile(paths.resolvers, (await readIfExists("/etc/resolv.conf")) ?? "", { mode: 0o644 });
    await writeFile(paths.mounts, mountTable(root));
  }
  if (root?.hasUser && uid !== null) await writeFile(paths.passwd, await passwdWith(root.image, uid), { mode: 0o644 });
  const { log, begin } = await openLog(paths.log);
  try {
    const [program, ...args] = [...(request.prefix ?? []), script];
    const assignments = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
    const child = spawn(program, [...args, ...assignments, ...request.command], {
      cwd: "/",
      detached: true,
      stdio: ["ignore", log.fd, log.fd, "pipe"],
      env: {
        PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        MACHINE_DIR: paths.directory,
        MACHINE_RUN: paths.run,
        MACHINE_ISOLATION: request.isolation,
        MACHINE_GROUPS: (root?.groups?.directories ?? []).join("\n"),
        MACHINE_MOUNTS: paths.mounts,
        MACHINE_OWNER: uid === null ? "" : `${uid}:${uid}`,
        MACHINE_CONTAINERS: request.hasContainers ? "yes" : "no",
        MACHINE_GROW: request.grow ? "yes" : "no",
      },
    });
    if (!request.awaited) child.unref();
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", resolve);
    });
    const up = child.stdio[3];
    const reportedUp = new Promise<"up">((resolve) => up?.once("data", () => resolve("up")));
    const timer = setTimeout(() => child.kill("SIGKILL"), startTimeoutMs);
    try {
      const first = await Promise.race([reportedUp, ended]);
      if (first !== "up" && first !== runsAlready) throw launchFailure(await textSince(paths.log, begin));
    } finally {
      clearTimeout(timer);
      up?.destroy();
    }
    return { ended };
  } finally {
    await log.close();
  }
}

/** Log text from this offset on. */
async function textSince(path: string, begin: number): Promise<string> {
  return (await readFile(path)).subarray(begin).toString("utf8");
}

/**
 * The reason of a failed start, from the machine's log of that start. The launcher's last line is for users; JSON
 * lines of programs are the cause, for the operator's log.
 */
function launchFailure(written: string): ComputeFailure {
  const lines = written.split("\n").filter((line) => line.trim() !== "");
  const lastLine = lines
    .findLast((line) => !line.startsWith("{"))
    ?.trim()
    .slice(0, maxReasonLength);
  const tail = lines.slice(-tailLines).join("\n");
  return new ComputeFailure(startFailureSentence(lastLine), tail === "" ? {} : { cause: new Error(tail) });
}

/** Opens the machine's log; `begin` is the offset of this start. */
async function openLog(path: string): Promise<{ log: FileHandle; begin: number }> {
  const log = await open(path, "a", 0o600);
  if ((await stat(path)).size > maxLogBytes) await truncate(path);
  return { log, begin: (await log.stat()).size };
}

async function passwdWith(image: string, uid: number): Promise<string> {
  const passwd = await readFile(join(image, "etc", "passwd"), "utf8");
  const users = [
    ["holdfast", uid, machineDataDirectory],
    ["holdfast-agent", agentUidOf(uid), "/var/lib/holdfast"],
  ];
  return `${passwd}${users.map(([name, id, home]) => `${name}:x:${id}:${uid}::${home}:/bin/sh\n`).join("")}`;
}

/** Time limit of a program. */
const programTimeoutMs = 120_000;

/**
 * Runs a program in a separate machine, at idle CPU and I/O priority. Resolves with its exit status once no process of
 * the machine remains; throws when the signal fires, or after two minutes.
 */
export async function runMachineProgram(
  request: Pick<LaunchRequest, "paths" | "isolation" | "root" | "uid" | "command">,
  signal: AbortSignal,
  log: Log,
): Promise<number | null> {
  const { paths } = request;
  const { ended } = await launchMachine({
    ...request,
    grow: false,
    env: { PATH: "/usr/sbin:/usr/bin", LANG: "C.UTF-8", HOME: "/tmp" },
    awaited: true,
    prefix: ["chrt", "--idle", "0", "ionice", "--class", "3"],
  });
  const giveUp = AbortSignal.any([signal, AbortSignal.timeout(programTimeoutMs)]);
  const stop = () => {
    stopMachine(paths, 0).catch((error: Error) => log.warn("program not stopped", { error: error.message }));
  };
  giveUp.addEventListener("abort", stop, { once: true });
  const status = await ended;
  giveUp.removeEventListener("abort", stop);
  await stopMachine(paths, 0);
  giveUp.throwIfAborted();
  return status;
}

/** Inputs of a machine's root. */
interface MachineRoot {
  readonly paths: MachinePaths;
  /** Root directory of the node image. */
  readonly image: string;
  readonly runtime: MachineRuntime;
  readonly disk: "loop" | "directory";
  /** True if the machine has a passwd file that replaces the image's. */
  readonly hasUser: boolean;
  /** Directory of the compiled keeper and agent (machine-code.ts); undefined if they run from the checkout. */
  readonly code: { readonly directory: string; readonly writable: boolean } | undefined;
  /** Control groups of the machine, mounted for reading their counters. */
  readonly groups: MachineGroups | undefined;
}

const devices = ["null", "zero", "full", "random", "urandom"];

/** Mounts of a machine in the format of fstab(5), in order; targets are below its root. */
function mountTable(root: MachineRoot): string {
  const { paths, runtime } = root;
  // Repeats the options of the host's mount: in a user namespace, a bind mount cannot drop them.
  const readOnly = "bind,ro,nosuid,nodev";
  const disk: Row =
    root.disk === "loop"
      ? [paths.diskFile, machineDataDirectory, "xfs", `loop,${diskMountOptions}`]
      : [paths.dataDirectory, machineDataDirectory, "none", "bind"];
  const rows: Row[] = [
    [`${root.image}/usr`, "/usr", "none", readOnly],
    [`${root.image}/etc`, "/etc", "none", readOnly],
    [runtime.checkout, "/holdfast/checkout", "none", readOnly],
    [dirname(runtime.node), "/holdfast/node", "none", readOnly],
    // The image has no resolvers, so the machine uses the host's.
    [paths.resolvers, "/etc/resolv.conf", "none", readOnly],
    [paths.state, "/var/lib/holdfast", "none", "bind"],
    disk,
    ["proc", "/proc", "proc", "nosuid,nodev,noexec"],
    ...devices.map((device): Row => [`/dev/${device}`, `/dev/${device}`, "none", "bind"]),
  ];
  if (root.code !== undefined)
    rows.push([root.code.directory, machineCodeDirectory, "none", root.code.writable ? "bind,nosuid,nodev" : readOnly]);
  for (const [directory, target] of root.groups?.mounts ?? []) rows.push([directory, target, "none", readOnly]);
  // Engines need a passwd entry for their user.
  if (root.hasUser) rows.push([paths.passwd, "/etc/passwd", "none", "bind,ro"]);
  if (runtime.hidden !== undefined) rows.push(["hidden", `/holdfast/checkout/${runtime.hidden}`, "tmpfs", "ro,mode=0"]);
  return rows.map((row) => `${row.map(escaped).join(" ")} 0 0\n`).join("");
}

type Row = readonly [source: string, target: string, type: string, options: string];

function escaped(field: string): string {
  return field.replaceAll(/[\\ \t\n#]/g, (char) => `\\${char.charCodeAt(0).toString(8).padStart(3, "0")}`);
}
