import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBlockClaims } from "./block-claims.ts";
import { openBoundedLog } from "./bounded-log.ts";
import { startChild } from "./child.ts";
import type { Confirm } from "./clean-confirmation.ts";
import { createMachineHost } from "./create-machine-host.ts";
import { markOf, namesIn, nearDirectories, removeFiles } from "./data-directory.ts";
import { removeNames } from "./dns-command.ts";
import type { Installation } from "./installation.ts";
import { type Layout, layoutOf } from "./layout.ts";
import type { MachineHost } from "./machine-host.ts";
import {
  endOrphan,
  installationOfOrphan,
  type OrphanedInstallation,
  orphanOf,
  removeOrphanedNetwork,
  unmountDisksOf,
} from "./orphaned-installation.ts";
import { machineGraceMs } from "./platform.ts";
import { isRunning } from "./recorded-process.ts";
import { runningSupervisor } from "./supervisor-lock.ts";
import { UserError } from "./user-error.ts";
import type { UpDeps } from "./with-platform.ts";

/**
 * Stops the installation of exactly this directory with its machines, and removes all that it made. If the directory
 * was removed by hand, removes all its remains on the host and no file; `incusSocket` names an existing Incus daemon
 * that it used. `confirm` is asked before any change; without it, the caller has the user's consent.
 */
export async function clean(
  dataDir: string,
  deps: UpDeps,
  incusSocket?: string,
  confirm: Confirm = async () => undefined,
): Promise<void> {
  const layout = layoutOf(dataDir);
  const { root } = layout;
  const near = nearDirectories(root, deps);
  if (near.below.length > 0)
    throw new UserError(`${root} is unchanged: it has data directories below it; ${commandsFor(near.below)}`);
  const installation = markOf(root);
  if (installation !== undefined) {
    requireOriginal(root, installation, deps);
    await confirm(questionOf(layout, installation));
    return await cleanInstallation(layout, installation, deps);
  }
  const orphan = orphanOf(root, deps);
  if (orphan !== undefined) {
    const what = orphan.runs ? "End its processes and remove" : "Remove";
    await confirm(`${root} has no installation.json. ${what} its remains on this host, with the data of its machines?`);
    return await cleanOrphan(layout, orphan, deps, incusSocket);
  }
  if (near.above.length > 0)
    throw new UserError(`${root} is unchanged: it is in a data directory; ${commandsFor(near.above)}`);
  if (near.removed.length > 0)
    throw new UserError(
      `${root} is unchanged: data directories below it were removed by hand; ${commandsFor(near.removed)}`,
    );
  if (existsSync(root)) throw new UserError(`${root} is not a data directory of Holdfast; it is unchanged`);
  await removeNames(root, deps);
  deps.print(`${root} does not exist, and nothing on this host belongs to it; nothing to remove`);
}

/** The commands that remove the installations of other directories, of the first ones if there are many. */
function commandsFor(directories: readonly string[]): string {
  const commands = directories.slice(0, 5).map((each) => `\`npm run clean -- --data ${each}\``);
  const more = directories.length > commands.length ? ` and ${directories.length - commands.length} more` : "";
  return `to remove what is there: ${commands.join(", ")}${more}`;
}

/** Throws a UserError for a copy of a data directory: its records name processes and addresses of the original. */
function requireOriginal(
  directory: string,
  { loopback_block: block }: Installation,
  { registryDir, clock }: UpDeps,
): void {
  if (createBlockClaims(registryDir, clock.now).isOfOther({ directory, block }))
    throw new UserError(
      `another installation of this host uses the addresses ${block}.*; is ${directory} a copy of it? It is unchanged`,
    );
}

function questionOf({ root, machines, run }: Layout, { ports, objects }: Partial<Installation>): string {
  const count = namesIn(machines).length;
  const ofServices = `${count === 1 ? "1 machine" : `${count} machines`} with the data of services`;
  const ofControllers = ports === undefined ? [] : ["all keys", "the control plane's state"];
  const stored = ports === undefined || objects !== undefined ? [] : ["backups"];
  const state = runningSupervisor(run) === undefined ? "" : ", which is running";
  const lost = [ofServices, ...stored, ...ofControllers].join(", ");
  return `Remove the installation in ${root}${state}? Lost: ${lost}.`;
}

async function cleanInstallation(layout: Layout, installation: Installation, deps: UpDeps): Promise<void> {
  const { clock, environment, print, registryDir } = deps;
  const { root } = layout;
  const supervisor = runningSupervisor(layout.run);
  if (supervisor !== undefined) {
    print("stopping the installation");
    process.kill(supervisor.pid, "SIGTERM");
    while (isRunning(supervisor)) await clock.sleep(50);
  }
  const host = createMachineHost(layout, installation, environment);
  await removeMachines(host, clock, { logs: layout.log, keepsDisks: false });
  await removeNames(root, deps);
  const others = removeFiles(layout);
  createBlockClaims(registryDir, clock.now).release({ directory: root, block: installation.loopback_block });
  if (others.length === 0) print(`${root} is removed`);
  else print(`the installation in ${root} is removed; files that are not of Holdfast remain: ${others.join(", ")}`);
  if (host.leftoverNotice !== undefined) print(host.leftoverNotice);
}

async function cleanOrphan(
  layout: Layout,
  { blocks, runs }: OrphanedInstallation,
  deps: UpDeps,
  incusSocket: string | undefined,
): Promise<void> {
  const { clock, environment, print, registryDir, asRoot } = deps;
  const { root } = layout;
  await removeNames(root, deps);
  print(`${root} was removed by hand; looking for its remains on this host`);
  if (runs) print("ending its processes");
  await endOrphan(root, deps);
  const logs = mkdtempSync(join(tmpdir(), "holdfast-clean-"));
  try {
    for (const block of blocks) {
      const installation = installationOfOrphan(root, block, incusSocket);
      const host = createMachineHost(layout, installation, environment);
      await removeMachines(host, clock, { logs, keepsDisks: true });
      await removeOrphanedNetwork(block, asRoot);
      if (host.leftoverNotice !== undefined) print(host.leftoverNotice);
    }
  } finally {
    rmSync(logs, { recursive: true, force: true });
  }
  await unmountDisksOf(layout);
  const claims = createBlockClaims(registryDir, clock.now);
  for (const block of blocks) claims.release({ directory: root, block });
  const files = existsSync(root) ? "; files in the directory are unchanged, as it has no installation.json" : "";
  print(`the remains of ${root} on this host are removed${files}`);
  print(
    "not found without it: disks in directories of HOLDFAST_STORAGE_TIERS (their holdfast/), objects in another store,",
  );
  print(
    "machines of an Incus daemon that is not its own (name it by --incus-socket PATH), and machines on other hosts",
  );
}

/** Stops the machines and removes their resources from the host; runs the installation's Incus daemon for that. */
async function removeMachines(
  host: MachineHost,
  clock: UpDeps["clock"],
  { logs, keepsDisks }: { readonly logs: string; readonly keepsDisks: boolean },
): Promise<void> {
  const { daemon } = host;
  const log = daemon && openBoundedLog(join(logs, `${daemon.name}.log`), { maxBytes: 16 << 20, filesMax: 3 });
  const child = daemon && log && startChild(daemon, { log, print: () => undefined, monotonicMs: clock.monotonicMs });
  try {
    await host.stopMachines(machineGraceMs);
    await host.remove({ keepsDisks });
  } finally {
    await child?.stop();
  }
  host.removeDaemonState();
}
