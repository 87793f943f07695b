import { spawn } from "node:child_process";
import { type FileHandle, open, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ComputeFailure, startFailureSentence } from "../compute-failure.ts";
import type { Isolation } from "../local/host-abilities.ts";
import { readIfThere } from "../local/atomic-file.ts";
import { agentUidOf } from "../local/machine-number.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { type MachineRoot, mountTable } from "./mount-table.ts";

const script = join(import.meta.dirname, "launch-machine.sh");
const runsAlready = 75;
const upWithinMs = 30_000;
const logBytesMax = 1 << 20;
const wordsMax = 300;
/** Of a log that tells why a start came to nothing. */
const linesKept = 20;

export interface LaunchRequest {
  readonly paths: MachinePaths;
  readonly isolation: Isolation;
  /** Undefined without namespaces: it has the host's root then. */
  readonly root: MachineRoot | undefined;
  readonly uid: number | null;
  /** The file system of /data is smaller than its disk. */
  readonly grow: boolean;
  /** Program and arguments, with paths as they are inside. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Words before the command that starts it, such as `nice`. */
  readonly prefix?: readonly string[];
  /** The caller waits for its end: this process does not end before. */
  readonly awaited?: boolean;
}

/** The process in front of a launched machine. */
export interface Launched {
  /** Its exit status, once nothing of the machine is left. */
  readonly ended: Promise<number | null>;
}

/**
 * Starts the machine; resolves when its program is about to start, or when it turns out to run already. It is no child in
 * any way that matters: a controller's end leaves it alone.
 */
export async function launchMachine(request: LaunchRequest): Promise<Launched> {
  const { paths, root, uid } = request;
  if (root !== undefined) {
    await writeFile(paths.resolvers, (await readIfThere("/etc/resolv.conf")) ?? "", { mode: 0o644 });
    await writeFile(paths.mounts, mountTable(root));
  }
  if (root?.hasUser && uid !== null) await writeFile(paths.passwd, await passwdWith(root.image, uid), { mode: 0o644 });
  const { log, begin } = await openLog(paths.log);
  try {
    const [program, ...args] = [...(request.prefix ?? []), script];
    const words = Object.entries(request.env).map(([name, value]) => `${name}=${value}`);
    const child = spawn(program, [...args, ...words, ...request.command], {
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
        MACHINE_GROW: request.grow ? "yes" : "no",
      },
    });
    if (!request.awaited) child.unref();
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", resolve);
    });
    const up = child.stdio[3];
    const said = new Promise<"up">((resolve) => up?.once("data", () => resolve("up")));
    const timer = setTimeout(() => child.kill("SIGKILL"), upWithinMs);
    try {
      const first = await Promise.race([said, ended]);
      if (first !== "up" && first !== runsAlready) throw launchFailure(await wordsSince(paths.log, begin));
    } finally {
      clearTimeout(timer);
      up?.destroy();
    }
    return { ended };
  } finally {
    await log.close();
  }
}

/** What was written to the log from there on. */
async function wordsSince(path: string, begin: number): Promise<string> {
  return (await readFile(path)).subarray(begin).toString("utf8");
}

/**
 * Pure: why a start came to nothing, by what was written to the machine's log during it. The launcher's last words are for
 * everybody; lines of programs, which log in JSON, are the cause, which is for the operator's log.
 */
function launchFailure(written: string): ComputeFailure {
  const lines = written.split("\n").filter((line) => line.trim() !== "");
  const words = lines
    .findLast((line) => !line.startsWith("{"))
    ?.trim()
    .slice(0, wordsMax);
  const tail = lines.slice(-linesKept).join("\n");
  return new ComputeFailure(startFailureSentence(words), tail === "" ? {} : { cause: new Error(tail) });
}

/** The machine's log, and where this start begins in it. */
async function openLog(path: string): Promise<{ log: FileHandle; begin: number }> {
  const log = await open(path, "a", 0o600);
  if ((await stat(path)).size > logBytesMax) await truncate(path);
  return { log, begin: (await log.stat()).size };
}

async function passwdWith(image: string, uid: number): Promise<string> {
  const passwd = await readFile(join(image, "etc", "passwd"), "utf8");
  const users = [
    ["holdfast", uid, "/data"],
    ["holdfast-agent", agentUidOf(uid), "/var/lib/holdfast"],
  ];
  return `${passwd}${users.map(([name, id, home]) => `${name}:x:${id}:${uid}::${home}:/bin/sh\n`).join("")}`;
}
