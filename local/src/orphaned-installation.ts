import { existsSync, readFileSync } from "node:fs";
import { sep } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { detectGroups, groupsOf, removeGroups } from "@holdfast/compute/local/control-groups.ts";
import { createBlockClaims } from "./block-claims.ts";
import { daemonOwner, daemonOwners, incusDirectory } from "./incus-daemon.ts";
import { addressBlockOf, removeNetwork } from "./incus-host.ts";
import type { Installation } from "./installation.ts";
import type { Layout } from "./layout.ts";
import { endProcesses, processesOf } from "./installation-processes.ts";
import { UserError } from "./user-error.ts";
import type { UpDeps } from "./with-platform.ts";

const killTimeoutMs = 10_000;
const removalTimeoutMs = 60_000;

/** The remains on the host of an installation whose directory was removed by hand. */
export interface OrphanedInstallation {
  /** Blocks of loopback addresses of the installation; empty if no claim or daemon has them. */
  readonly blocks: readonly string[];
  readonly runs: boolean;
}

/** Undefined if nothing on this host belongs to the directory. */
export function orphanOf(directory: string, { registryDir, clock }: UpDeps): OrphanedInstallation | undefined {
  const number = daemonOwners().get(directory);
  const claims = createBlockClaims(registryDir, clock.now);
  // A claim of a removed directory may remain after another installation has claimed its block.
  const claimed = claims.blocksOf(directory).filter((block) => !claims.isOfOther({ directory, block }));
  const blocks = [...new Set([...claimed, ...(number === undefined ? [] : [`127.${number}`])])];
  const runs = processesOf(directory).length > 0;
  return blocks.length === 0 && !runs ? undefined : { blocks, runs };
}

/**
 * Kills the processes of the installation and removes the control groups of its machines. Throws a UserError for
 * processes that do not end.
 */
export async function endOrphan(directory: string, { clock }: UpDeps): Promise<void> {
  const machines = processesOf(directory).flatMap(({ machineId }) => machineId ?? []);
  const remaining = await endProcesses(directory, { clock, timeoutMs: killTimeoutMs });
  if (remaining.length > 0) {
    const pids = remaining.map(({ process: { pid } }) => pid).join(", ");
    throw new UserError(`these processes of ${directory} do not end: ${pids}`);
  }
  const ability = await detectGroups();
  for (const id of machines) await removeGroups(groupsOf(ability, id).directories);
}

/** Unmounts the disks of machines in the data directory, the innermost first; other mounts stay. */
export async function unmountDisksOf({ machines, preparedDisks }: Layout): Promise<void> {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const below = mounts
    .map((line) => unescaped(line.split(" ")[1] ?? ""))
    .filter((at) => [machines, preparedDisks].some((directory) => at.startsWith(directory + sep)));
  for (const target of below.toSorted().toReversed()) await runProgram("umount", [target]);
}

/** Description of the installation, as far as its Incus daemon, or the daemon that the user names, reveals it. */
export function installationOfOrphan(
  directory: string,
  block: string,
  socket: string | undefined,
): Omit<Installation, "ports"> {
  const number = block.split(".")[1] ?? "";
  // A daemon of an early release has no owner file; its project names the owner.
  const hasDaemon = existsSync(incusDirectory(number)) && (daemonOwner(number) ?? directory) === directory;
  const isIncus = hasDaemon || socket !== undefined;
  return {
    id: "",
    loopback_block: block,
    provider: isIncus ? "incus" : "process",
    ...(isIncus && !hasDaemon && socket !== undefined && { incus_socket: socket }),
  };
}

/** Removes the network resources of the block's machines, of any daemon; does nothing without root. */
export async function removeOrphanedNetwork(block: string, asRoot: boolean): Promise<void> {
  if (!asRoot || !(await hasNetworkTools())) return;
  await removeNetwork(addressBlockOf(block), AbortSignal.timeout(removalTimeoutMs));
}

async function hasNetworkTools(): Promise<boolean> {
  return await Promise.all([runProgram("ip", ["-Version"]), runProgram("nft", ["--version"])]).then(
    () => true,
    () => false,
  );
}

/** /proc escapes separators as octal numbers. */
function unescaped(path: string): string {
  return path.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
