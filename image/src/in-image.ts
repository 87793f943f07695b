import { join } from "node:path";
import { readFileSync } from "node:fs";

/** Command line of a process to spawn. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
}

export interface LaunchOptions {
  /** Program and arguments; paths are those inside. */
  readonly argv: readonly string[];
  /** User and group id, not 0. Without root, only the program itself sees it. */
  readonly uid: number;
  /** Host directories that the program reads and writes, at the same paths inside. */
  readonly binds: readonly string[];
  /** True if this process is root. */
  readonly asRoot: boolean;
  /** True: the program may listen on ports below 1024, which needs root; absent: false. */
  readonly lowPorts?: boolean;
}

const script = join(import.meta.dirname, "..", "enter-image.sh");

/**
 * Runs a program inside an image, on the host's network. The spawned process is `unshare`, which ignores SIGTERM: send
 * signals to its only child. When the spawning process ends, even by a kill, Linux kills the program.
 */
export function inImage(imageRoot: string, options: LaunchOptions): Launch {
  const hidden = options.binds.find((path) => /^\/(usr|etc)(\/|$)/.test(path));
  if (hidden !== undefined) throw new Error(`${hidden} cannot be in an image, which has its /usr and /etc read-only`);
  const user = options.asRoot ? [] : ["--user", "--map-root-user"];
  const binds = options.binds.flatMap((path) => ["--bind", path]);
  const invoker = options.asRoot ? "root" : "user";
  return dyingWithParent([
    "unshare",
    ...user,
    "--mount",
    "--pid",
    "--fork",
    "--kill-child",
    script,
    invoker,
    imageRoot,
    String(options.uid),
    ...(options.lowPorts === true ? ["--low-ports"] : []),
    ...binds,
    "--",
    ...options.argv,
  ]);
}

/** Runs a program of the host as another user, without namespaces or without an image. */
export function onHost(options: LaunchOptions): Launch {
  const uid = String(options.uid);
  const user = options.asRoot ? ["--reuid", uid, "--regid", uid, "--clear-groups"] : [];
  return { command: "setpriv", args: [...user, "--no-new-privs", "--pdeathsig", "KILL", ...options.argv] };
}

/** Linux kills the command when the process that spawned it ends. */
export function dyingWithParent(argv: readonly string[]): Launch {
  return { command: "setpriv", args: ["--pdeathsig", "KILL", ...argv] };
}

/**
 * Pid of the program of a spawned `inImage`, in the host's namespace: the only child of `unshare`. Without `unshare`,
 * the spawned pid itself. Undefined if the process has ended.
 */
export function programPid(spawned: number): number | undefined {
  try {
    if (readFileSync(`/proc/${spawned}/comm`, "utf8").trim() !== "unshare") return spawned;
    const children = readFileSync(`/proc/${spawned}/task/${spawned}/children`, "utf8").trim();
    return children === "" ? undefined : Number(children.split(" ")[0]);
  } catch {
    // Its /proc directory disappeared during the read.
    return undefined;
  }
}
