import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createBlockClaims } from "./block-claims.ts";
import { readJson } from "./files.ts";
import type { Installation } from "./installation.ts";
import { type Layout, layoutOf } from "./layout.ts";
import { openBoundedLog } from "./bounded-log.ts";
import { startChild } from "./child.ts";
import { removeNames } from "./dns-command.ts";
import { createMachineHost } from "./create-machine-host.ts";
import {
  endOrphan,
  installationOfOrphan,
  orphanOf,
  removeOrphanedNetwork,
  removeFiles,
  unmountBelow,
} from "./orphaned-installation.ts";
import type { MachineHost } from "./machine-host.ts";
import { machineGraceMs } from "./platform.ts";
import { isRunning } from "./recorded-process.ts";
import { runningSupervisor } from "./supervisor-lock.ts";
import { UserError } from "./user-error.ts";
import type { UpDeps } from "./with-platform.ts";

/**
 * Stops the installation of a directory with its machines, and removes the directory with all data. If the directory
 * was removed by hand, removes all its remains on the host; `incusSocket` names an existing Incus daemon that it used.
 */
export async function clean(dataDir: string, deps: UpDeps, incusSocket?: string): Promise<void> {
  const { clock, environment, print, registryDir } = deps;
  const layout = layoutOf(dataDir);
  const installation = readJson<Installation>(layout.installation);
  if (installation === undefined) return await cleanOrphan(layout, deps, incusSocket);

  const supervisor = runningSupervisor(layout.run);
  if (supervisor !== undefined) {
    print("stopping the installation");
    process.kill(supervisor.pid, "SIGTERM");
    while (isRunning(supervisor)) await clock.sleep(50);
  }
  const host = createMachineHost(layout, installation, environment);
  await removeMachines(host, layout, clock);
  await removeNames(layout.root, deps);
  rmSync(layout.root, { recursive: true, force: true, maxRetries: 3 });
  createBlockClaims(registryDir, clock.now).release({
    directory: layout.root,
    block: installation.loopback_block,
  });
  print(`${dataDir} is removed`);
  if (host.leftoverNotice !== undefined) print(host.leftoverNotice);
}

async function cleanOrphan(layout: Layout, deps: UpDeps, incusSocket: string | undefined): Promise<void> {
  const { clock, environment, print, registryDir, asRoot } = deps;
  const { root } = layout;
  await removeNames(root, deps);
  const found = orphanOf(root, deps);
  if (found === undefined) {
    if (existsSync(root)) throw new UserError(`${root} is not a data directory of Holdfast; it is unchanged`);
    return print(`${root} does not exist, and nothing on this host belongs to it; nothing to remove`);
  }
  const { blocks, runs } = found;
  print(`${root} was removed by hand; looking for its remains on this host`);
  if (runs) print("ending its processes");
  await endOrphan(root, deps);
  for (const block of blocks) {
    const installation = installationOfOrphan(root, block, incusSocket);
    const host = createMachineHost(layout, installation, environment);
    mkdirSync(layout.log, { recursive: true });
    await removeMachines(host, layout, clock);
    await removeOrphanedNetwork(block, asRoot);
    if (host.leftoverNotice !== undefined) print(host.leftoverNotice);
  }
  await unmountBelow(root);
  const isRemoved = removeFiles(layout);
  const claims = createBlockClaims(registryDir, clock.now);
  for (const block of blocks) claims.release({ directory: root, block });
  print(
    `the remains of ${root} on this host are removed${isRemoved ? "" : "; the directory has other files, so it remains"}`,
  );
  print(
    "not found without it: disks in directories of HOLDFAST_STORAGE_TIERS (their holdfast/), objects in another store,",
  );
  print(
    "machines of an Incus daemon that is not its own (name it by --incus-socket PATH), and machines on other hosts",
  );
}

/** Stops the machines and removes their resources from the host; runs the installation's Incus daemon for that. */
async function removeMachines(host: MachineHost, layout: Layout, clock: UpDeps["clock"]): Promise<void> {
  const { daemon } = host;
  const log = daemon && openBoundedLog(join(layout.log, `${daemon.name}.log`), { maxBytes: 16 << 20, filesMax: 3 });
  const child = daemon && log && startChild(daemon, { log, print: () => undefined, monotonicMs: clock.monotonicMs });
  try {
    await host.stopMachines(machineGraceMs);
    await host.remove();
  } finally {
    await child?.stop();
  }
  host.removeDaemonState();
}
