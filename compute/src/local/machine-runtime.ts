import { join, relative } from "node:path";
import type { HostAbilities } from "./host-abilities.ts";
import type { MachinePaths } from "./machine-paths.ts";

/** Parts of the host that all machines of a provider share. */
export interface MachineRuntime {
  readonly abilities: HostAbilities;
  /** Root directory of the workspace. */
  readonly checkout: string;
  /** Directory below the checkout that is hidden from machines, relative; undefined if there is none. */
  readonly hidden: string | undefined;
  /** Path of the node binary. */
  readonly node: string;
}

/** Directory of the compiled keeper and agent inside a machine. */
export const machineCodeDirectory = "/holdfast/code";

/**
 * First process of a machine with its own root: forwards signals to the keeper and reaps orphaned children, which Node
 * cannot. It ends with the keeper, and the machine ends with it.
 */
export const initCommand: readonly string[] = ["/usr/bin/tini", "--"];

/**
 * Capabilities of root inside a machine: programs in namespaces and as other users (sys_admin, setuid, setgid,
 * setpcap), their directories and logs (chown, dac_override, fowner), their end (kill, and sys_ptrace to find them by
 * their namespace), and ports below 1024 for fronts (net_bind_service). Root has no device, module, clock, network or
 * other file to change.
 */
const keeperCapabilities =
  "chown dac_override fowner kill net_bind_service setgid setpcap setuid sys_admin sys_ptrace".split(" ");

/** The first process with only the keeper's capabilities, for a machine with a separate root. */
export const restrictedInitCommand: readonly string[] = [
  "/usr/bin/setpriv",
  "--inh-caps=-all",
  "--ambient-caps=-all",
  `--bounding-set=${["-all", ...keeperCapabilities.map((name) => `+${name}`)].join(",")}`,
  "--",
  ...initCommand,
];

/** Paths of node and code inside a machine. */
export interface RuntimePaths {
  readonly node: string;
  readonly checkout: string;
}

/**
 * Path of the platform's directory below the checkout, which must be hidden from machines because it contains keys;
 * undefined if it is elsewhere.
 */
export function hiddenDirectoryIn(checkout: string, directory: string): string | undefined {
  const path = relative(checkout, directory);
  return path === "" || path.startsWith("..") ? undefined : path;
}

/** Paths of the platform inside a machine; the host's paths if the machine uses the host's root. */
export function runtimePathsOf({ abilities, checkout, node }: MachineRuntime): RuntimePaths {
  return abilities.isolation === "none"
    ? { node, checkout }
    : { node: "/holdfast/node/node", checkout: "/holdfast/checkout" };
}

/** Environment variables for the directories of a machine that uses the host's root. */
export function directoryVariables(
  { abilities }: MachineRuntime,
  paths: MachinePaths,
  sockets: string,
): Readonly<Record<string, string>> {
  if (abilities.isolation !== "none") return {};
  return {
    HOLDFAST_STATE_DIR: paths.state,
    HOLDFAST_DATA_DIR: paths.dataDirectory,
    HOLDFAST_RUN_DIR: sockets,
    // The default directory would be the host's.
    HOLDFAST_CGROUP_DIR: "",
    HOLDFAST_KEEPER_SOCKET: join(sockets, "keeper.sock"),
  };
}
