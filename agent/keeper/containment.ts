import { spawnSync } from "node:child_process";
import type { Sandbox } from "./sandbox.ts";
import { createGroupSandbox } from "./group-sandbox.ts";
import { createNamespaceSandbox } from "./namespace-sandbox.ts";

/**
 * The agent runs platform code. A component that it starts has the role of the engine, of a front, which is the
 * engine's user with the right to listen on ports below 1024, or of a container, which runs programs of users.
 */
export type ComponentRole = "agent" | "engine" | "front" | "container";

/**
 * User ids on a machine that has accounts for them. The agent shares the engine's group: it gives the engine access to
 * a file through the group, and all its other files remain private.
 */
export interface MachineUserIds {
  readonly agent: number;
  readonly engine: number;
  /** First of 65,536 ids for the users of containers; absent on a machine without containers. */
  readonly container?: number;
}

/** Number of user ids of a container. */
const containerIds = 65_536;
/** Limit of processes and threads of a container, over all its users. */
const containerProcesses = 4_096;

/** Directory of the data disk for the files of containers, which only their user may read. */
export const containersName = "containers";

/** Isolation of components on this host. */
export interface Containment {
  readonly kind: "namespace" | "group";
  /** Returns the command line that runs argv isolated and without privileges. Throws if this host lacks the role. */
  wrap(argv: readonly string[], role: ComponentRole): string[];
  /** Returns the sandbox of a process that was just spawned with a wrapped command line. */
  enclose(childPid: number): Promise<Sandbox>;
}

/**
 * Chooses the strongest isolation that this host supports. With a PID namespace the kernel kills the whole component
 * together with its first process. Without namespaces, processes are found by the output that they share.
 */
export function chooseContainment(users: MachineUserIds | undefined, { allowNamespaces = true } = {}): Containment {
  const root = process.getuid?.() === 0;
  const drop = (role: Exclude<ComponentRole, "container">) => [
    "setpriv",
    ...(root && users !== undefined
      ? [
          `--reuid=${users[role === "front" ? "engine" : role]}`,
          `--regid=${users.engine}`,
          "--clear-groups",
          ...(role === "front" ? lowPorts : noCapabilities),
        ]
      : []),
    "--no-new-privs",
    "--pdeathsig=KILL",
    "--",
  ];
  // setpriv clears the parent-death signal when it switches the user, so the inner setpriv sets it again.
  const isolate = [
    "setpriv",
    "--pdeathsig=KILL",
    "unshare",
    ...userMap(root, users),
    "--pid",
    "--fork",
    "--kill-child",
  ];
  const inside = (argv: readonly string[], role: ComponentRole) => {
    if (role === "container") throw new Error("this machine has no namespaces for containers");
    return [...(role === "agent" ? [] : oomPreferred), ...drop(role), ...argv];
  };
  const wrap = (argv: readonly string[], role: ComponentRole) => [
    ...isolate,
    "--mount-proc",
    ...(role === "container" ? insideContainer(argv, root ? users?.container : undefined) : inside(argv, role)),
  ];
  if (allowNamespaces && canRun(wrap(["true"], "engine"))) {
    return { kind: "namespace", wrap, enclose: createNamespaceSandbox };
  }
  return { kind: "group", wrap: inside, enclose: createGroupSandbox };
}

/** Programs never regain root's capabilities, not even through a setuid file. */
const noCapabilities = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"];

/** The only capability of a front. */
const lowPorts = ["--inh-caps", "--ambient-caps", "--bounding-set"].map((set) => `${set}=-all,+net_bind_service`);

/**
 * Makes the kernel's OOM killer prefer the engine to agent and keeper, whose end would end the machine. A score of 200
 * counts as a fifth of the machine's memory on top of what the process uses (proc(5), oom_score_adj).
 */
const oomPreferred = ["choom", "--adjust=200", "--"];

/**
 * Command line for root of a user namespace that has no id of the machine: neither engine nor agent is among its users.
 * The namespace is created twice. The owner of the inner one is not root of the machine, so that the kernel counts the
 * processes of all its users against one limit, which nobody inside can raise. The kernel's OOM killer prefers a
 * container to everything else of the machine.
 */
function insideContainer(argv: readonly string[], firstId: number | undefined): string[] {
  if (firstId === undefined) throw new Error("this machine has no user ids for containers");
  const userNamespace = (first: number) => [
    "unshare",
    "--user",
    `--map-users=0:${first}:${containerIds}`,
    `--map-groups=0:${first}:${containerIds}`,
    "--setuid=0",
    "--setgid=0",
  ];
  return [
    "choom",
    "--adjust=500",
    "--",
    ...userNamespace(firstId),
    "prlimit",
    `--nproc=${containerProcesses}:${containerProcesses}`,
    ...userNamespace(0),
    "--mount",
    "--cgroup",
    "setpriv",
    "--no-new-privs",
    "--pdeathsig=KILL",
    "--",
    ...argv,
  ];
}

/**
 * Options of unshare for the component's user. On a machine without these accounts the component runs as `nobody` in a
 * user namespace, since engines refuse to run as root.
 */
function userMap(root: boolean, users: MachineUserIds | undefined): string[] {
  if (!root) return ["--user", "--map-current-user"];
  return users === undefined ? ["--user", "--map-user=65534", "--map-group=65534"] : [];
}

function canRun(argv: readonly string[]): boolean {
  const [file = "", ...args] = argv;
  return spawnSync(file, args, { stdio: "ignore", timeout: 5_000 }).status === 0;
}
