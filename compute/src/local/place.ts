import { join, relative } from "node:path";
import type { HostAbilities } from "./host-abilities.ts";
import type { MachinePaths } from "./machine-paths.ts";

/** What all machines of a provider share of the host. */
export interface Place {
  readonly abilities: HostAbilities;
  /** Code of the platform. */
  readonly checkout: string;
  /** Directory below the checkout that no machine may see, relative; undefined when there is none. */
  readonly hidden: string | undefined;
  /** Path of the node binary. */
  readonly node: string;
}

/** Where a machine finds keeper and agent as they were made for machines. */
export const codeInside = "/holdfast/code";

/**
 * First process of a machine's own root, out of the image: hands signals on to the keeper, and reaps whatever comes to be its
 * child by the death of its parent, which Node cannot. It ends when the keeper ends, and the machine with it.
 */
export const init: readonly string[] = ["/usr/bin/tini", "--"];

/**
 * What the machine's root is for: programs in namespaces and of users of their own (sys_admin, setuid, setgid, setpcap), their
 * directories and logs (chown, dac_override, fowner), and their end (kill, and sys_ptrace to know them by their namespace). It has
 * no device, module, clock, network or other file of root's to change.
 */
const keeperCapabilities = "chown dac_override fowner kill setgid setpcap setuid sys_admin sys_ptrace".split(" ");

/** The same with the capabilities of a keeper and no way to others, for a machine with a root of its own. */
export const leastInit: readonly string[] = [
  "/usr/bin/setpriv",
  "--inh-caps=-all",
  "--ambient-caps=-all",
  `--bounding-set=${["-all", ...keeperCapabilities.map((name) => `+${name}`)].join(",")}`,
  "--",
  ...init,
];

/** Where node and the code are, as a machine sees them. */
export interface Inside {
  readonly node: string;
  readonly checkout: string;
}

/** The platform's directory is hidden from machines when it lies in the checkout: its keys are there. */
export function hiddenIn(checkout: string, directory: string): string | undefined {
  const path = relative(checkout, directory);
  return path === "" || path.startsWith("..") ? undefined : path;
}

/** Paths of the platform as the machine sees them: the host's where it has no root of its own. */
export function insideOf({ abilities, checkout, node }: Place): Inside {
  return abilities.isolation === "none"
    ? { node, checkout }
    : { node: "/holdfast/node/node", checkout: "/holdfast/checkout" };
}

/** Directories that differ where there is no root of its own. */
export function directoriesOf(
  { abilities }: Place,
  paths: MachinePaths,
  sockets: string,
): Readonly<Record<string, string>> {
  if (abilities.isolation !== "none") return {};
  return {
    HOLDFAST_STATE_DIR: paths.state,
    HOLDFAST_DATA_DIR: paths.dataDirectory,
    HOLDFAST_RUN_DIR: sockets,
    // It would be the host's.
    HOLDFAST_CGROUP_DIR: "",
    HOLDFAST_KEEPER_SOCKET: join(sockets, "keeper.sock"),
  };
}
