import { spawnSync } from "node:child_process";
import type { Cage } from "./cage.ts";
import { createGroupCage } from "./group-cage.ts";
import { createNamespaceCage } from "./namespace-cage.ts";

/** The agent is the platform's own; everything that it starts is the engine's. */
export type Role = "agent" | "engine";

/**
 * Users of a machine that has some of its own. The agent's group is the engine's: what it gives to the group, the engine reads;
 * its own files stay its own.
 */
export interface Users {
  readonly agent: number;
  readonly engine: number;
}

/** How this host keeps components apart. */
export interface Containment {
  readonly kind: "namespace" | "group";
  /** The command line that runs argv contained and unprivileged. */
  wrap(argv: readonly string[], role: Role): string[];
  /** The cage around a process that was just spawned with a wrapped command line. */
  enclose(childPid: number): Promise<Cage>;
}

/**
 * The strongest containment that works here. With a PID namespace the kernel kills all of a component with its first
 * process; where the host allows none, processes are found by the output that they share.
 */
export function chooseContainment(users: Users | undefined, { allowNamespaces = true } = {}): Containment {
  const root = process.getuid?.() === 0;
  const drop = (role: Role) => [
    "setpriv",
    ...(root && users !== undefined
      ? [`--reuid=${users[role]}`, `--regid=${users.engine}`, "--clear-groups", ...noCapabilities]
      : []),
    "--no-new-privs",
    "--pdeathsig=KILL",
    "--",
  ];
  // Changing the user clears the signal that unshare asked for, so setpriv asks again behind it.
  const isolate = [
    "setpriv",
    "--pdeathsig=KILL",
    "unshare",
    ...userMap(root, users),
    "--pid",
    "--fork",
    "--kill-child",
  ];
  const inside = (argv: readonly string[], role: Role) => [
    ...(role === "engine" ? firstToGo : []),
    ...drop(role),
    ...argv,
  ];
  const wrap = (argv: readonly string[], role: Role) => [...isolate, "--mount-proc", ...inside(argv, role)];
  if (allowNamespaces && works(wrap(["true"], "engine"))) {
    return { kind: "namespace", wrap, enclose: createNamespaceCage };
  }
  return { kind: "group", wrap: inside, enclose: createGroupCage };
}

/** Programs of a user never get what root could do, not by a file that would grant it. */
const noCapabilities = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"];

/**
 * When the machine's memory is exhausted the kernel ends an engine's process, never the agent or the keeper, with which the
 * whole machine would go: the score counts a fifth of the machine's memory on top of what the process uses.
 */
const firstToGo = ["choom", "--adjust=200", "--"];

/** Without a user of its own the component becomes nobody in a user namespace: engines refuse to be root. */
function userMap(root: boolean, users: Users | undefined): string[] {
  if (!root) return ["--user", "--map-current-user"];
  return users === undefined ? ["--user", "--map-user=65534", "--map-group=65534"] : [];
}

function works(argv: readonly string[]): boolean {
  const [file = "", ...args] = argv;
  return spawnSync(file, args, { stdio: "ignore", timeout: 5_000 }).status === 0;
}
