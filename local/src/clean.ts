import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createBlockRegistry } from "./block-registry.ts";
import { readJson } from "./files.ts";
import type { Installation } from "./installation.ts";
import { type Layout, layoutOf } from "./layout.ts";
import { openBoundedLog } from "./bounded-log.ts";
import { startChild } from "./child.ts";
import { createMachineHost } from "./create-machine-host.ts";
import {
  endOrphan,
  installationOfOrphan,
  orphanOf,
  removeForgottenNetwork,
  removeOwn,
  unmountBelow,
} from "./orphaned-installation.ts";
import type { MachineHost } from "./machine-host.ts";
import { machineGraceMs } from "./platform.ts";
import { isRunning } from "./process-identity.ts";
import { runningSupervisor } from "./supervisor-lock.ts";
import { UserError } from "./user-error.ts";
import type { UpDeps } from "./with-platform.ts";

/**
 * Stops the installation of a directory, its machines too, and removes the directory with all data. Where the directory was removed
 * by hand, everything else goes that the host knows to be its; `incusSocket` names a daemon of Incus that was not its own.
 */
export async function clean(dataDir: string, deps: UpDeps, incusSocket?: string): Promise<void> {
  const { clock, environment, say, registryDir } = deps;
  const layout = layoutOf(dataDir);
  const installation = readJson<Installation>(layout.installation);
  if (installation === undefined) return await cleanOrphan(layout, deps, incusSocket);

  const supervisor = runningSupervisor(layout.run);
  if (supervisor !== undefined) {
    say("stopping what runs");
    process.kill(supervisor.pid, "SIGTERM");
    while (isRunning(supervisor)) await clock.sleep(50);
  }
  const host = createMachineHost(layout, installation, environment);
  await removeMachines(host, layout, clock);
  rmSync(layout.root, { recursive: true, force: true, maxRetries: 3 });
  createBlockRegistry(registryDir, clock.now).release({
    directory: layout.root,
    block: installation.loopback_block,
  });
  say(`${dataDir} is removed`);
  if (host.remains !== undefined) say(host.remains);
}

async function cleanOrphan(layout: Layout, deps: UpDeps, incusSocket: string | undefined): Promise<void> {
  const { clock, environment, say, registryDir, asRoot } = deps;
  const { root } = layout;
  const found = orphanOf(root, deps);
  if (found === undefined) {
    if (existsSync(root)) throw new UserError(`${root} is not a data directory of Holdfast; it stays as it is`);
    return say(`${root} is not there, and nothing on this host is known to be of it; nothing to remove`);
  }
  const { blocks, runs } = found;
  say(`${root} was removed by hand; looking for what it left on this host`);
  if (runs) say("ending what still runs of it");
  await endOrphan(root, deps);
  for (const block of blocks) {
    const installation = installationOfOrphan(root, block, incusSocket);
    const host = createMachineHost(layout, installation, environment);
    mkdirSync(layout.log, { recursive: true });
    await removeMachines(host, layout, clock);
    await removeForgottenNetwork(block, asRoot);
    if (host.remains !== undefined) say(host.remains);
  }
  await unmountBelow(root);
  const isGone = removeOwn(layout);
  const registry = createBlockRegistry(registryDir, clock.now);
  for (const block of blocks) registry.release({ directory: root, block });
  say(`what ${root} left on this host is removed${isGone ? "" : "; other files are in that directory and stay"}`);
  say(
    "not known without it: disks in directories of HOLDFAST_STORAGE_TIERS (their holdfast/), objects in another store,",
  );
  say("machines of a daemon of Incus that is not its own (--incus-socket PATH names it) and those on other hosts");
}

/** Stops the machines and takes what is theirs from the host; a daemon of our own runs for that long. */
async function removeMachines(host: MachineHost, layout: Layout, clock: UpDeps["clock"]): Promise<void> {
  const { daemon } = host;
  const log = daemon && openBoundedLog(join(layout.log, `${daemon.name}.log`), { maxBytes: 16 << 20, keep: 3 });
  const child = daemon && log && startChild(daemon, { log, say: () => undefined, monotonicMs: clock.monotonicMs });
  try {
    await host.stopMachines(machineGraceMs);
    await host.remove();
  } finally {
    await child?.stop();
  }
  host.forget();
}
