import { existsSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { join, sep } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { detectGroups, groupsOf, removeGroups } from "@holdfast/compute/local/control-groups.ts";
import { createBlockRegistry } from "./block-registry.ts";
import { daemonOwner, daemonOwners, incusDirectory } from "./incus-daemon.ts";
import { addressBlockOf } from "./incus-host.ts";
import { removeNetwork } from "./incus-network.ts";
import type { Installation } from "./installation.ts";
import type { Layout } from "./layout.ts";
import { endProcesses, processesOf } from "./left-processes.ts";
import { UserError } from "./user-error.ts";
import type { UpDeps } from "./with-platform.ts";

const endWithinMs = 10_000;
const doneWithinMs = 60_000;

/** What the host knows of an installation whose directory was removed by hand. */
export interface OrphanedInstallation {
  /** Its blocks of loopback addresses: one, or none when nobody knows it any more. */
  readonly blocks: readonly string[];
  readonly runs: boolean;
}

/** Undefined when nothing on this host is known to be of the directory. */
export function orphanOf(directory: string, { registryDir, clock }: UpDeps): OrphanedInstallation | undefined {
  const number = daemonOwners().get(directory);
  const claimed = createBlockRegistry(registryDir, clock.now).blocksOf(directory);
  const blocks = [...new Set([...claimed, ...(number === undefined ? [] : [`127.${number}`])])];
  const runs = processesOf(directory).length > 0;
  return blocks.length === 0 && !runs ? undefined : { blocks, runs };
}

/** Ends what runs of it, unmounts its disks and removes the control groups of its machines. Throws a UserError for what cannot be ended. */
export async function endOrphan(directory: string, { clock }: UpDeps): Promise<void> {
  const machines = processesOf(directory).flatMap(({ machineId }) => machineId ?? []);
  const left = await endProcesses(directory, { clock, withinMs: endWithinMs });
  if (left.length > 0) {
    const pids = left.map(({ process: { pid } }) => pid).join(", ");
    throw new UserError(`these processes of ${directory} do not end, whatever holds them: ${pids}`);
  }
  const ability = await detectGroups();
  for (const id of machines) await removeGroups(groupsOf(ability, id).directories);
}

/** Unmounts what is mounted below the directory, the innermost first. */
export async function unmountBelow(directory: string): Promise<void> {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const below = mounts
    .map((line) => unescaped(line.split(" ")[1] ?? ""))
    .filter((at) => at.startsWith(directory + sep));
  for (const target of below.toSorted().toReversed()) await runProgram("umount", [target]);
}

/** What it was, as far as its daemon of Incus tells: one of its own, or the one that the user names. */
export function installationOfOrphan(
  directory: string,
  block: string,
  socket: string | undefined,
): Omit<Installation, "ports"> {
  const number = block.split(".")[1] ?? "";
  // One that does not say is of a release that did not write it down, and its project does.
  const hasDaemon = existsSync(incusDirectory(number)) && (daemonOwner(number) ?? directory) === directory;
  const isIncus = hasDaemon || socket !== undefined;
  return {
    id: "",
    loopback_block: block,
    provider: isIncus ? "incus" : "process",
    ...(isIncus && !hasDaemon && socket !== undefined && { incus_socket: socket }),
  };
}

/** Takes away what the network of the host has for machines of its block, whatever daemon made them; nothing without root. */
export async function removeForgottenNetwork(block: string, asRoot: boolean): Promise<void> {
  if (!asRoot || !(await hasNetworkTools())) return;
  await removeNetwork(addressBlockOf(block), AbortSignal.timeout(doneWithinMs));
}

/** What providers of machines and the command keep in the directory. */
const besides = ["running", "addresses", "public-addresses", "code", "sockets", "packed", "client"];

/** Removes what an installation makes in its directory, and the directory when nothing else is in it. */
export function removeOwn({ root, ...own }: Layout): boolean {
  const ofOthers = besides.map((name) => join(root, name));
  for (const path of [...Object.values(own), ...ofOthers])
    rmSync(path, { recursive: true, force: true, maxRetries: 3 });
  try {
    rmdirSync(root);
  } catch {
    // It is gone, or has what somebody else has put there.
  }
  return !existsSync(root);
}

async function hasNetworkTools(): Promise<boolean> {
  return await Promise.all([runProgram("ip", ["-Version"]), runProgram("nft", ["--version"])]).then(
    () => true,
    () => false,
  );
}

/** /proc writes what would end a word as an octal number. */
function unescaped(path: string): string {
  return path.replace(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
