import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createBlockRegistry } from "./block-registry.ts";
import { readJson } from "./files.ts";
import type { Installation } from "./installation.ts";
import { type Layout, layoutOf } from "./layout.ts";
import { openBoundedLog } from "./bounded-log.ts";
import { startChild } from "./child.ts";
import { createMachineHost } from "./create-machine-host.ts";
import type { MachineHost } from "./machine-host.ts";
import { machineGraceMs } from "./platform.ts";
import { isRunning } from "./process-identity.ts";
import { runningSupervisor } from "./supervisor-lock.ts";
import { UserError } from "./user-error.ts";
import type { UpDeps } from "./with-platform.ts";

/** Stops the installation of a directory, its machines too, and removes the directory with all data. */
export async function clean(dataDir: string, { clock, environment, say, registryDir }: UpDeps): Promise<void> {
  const layout = layoutOf(dataDir);
  if (!existsSync(layout.root)) return say(`${dataDir} is not there; nothing to remove`);
  const installation = readJson<Installation>(layout.installation);
  if (installation === undefined)
    throw new UserError(`${dataDir} is not a data directory of Holdfast; it stays as it is`);

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

/** Stops the machines and takes what is theirs from the host; a daemon of our own runs for that long. */
async function removeMachines(host: MachineHost, layout: Layout, clock: UpDeps["clock"]): Promise<void> {
  const { daemon } = host;
  const log = daemon && openBoundedLog(join(layout.log, `${daemon.name}.log`), { maxBytes: 16 << 20, keep: 3 });
  const child = daemon && log && startChild(daemon, { log, say: () => undefined, now: clock.now });
  try {
    await host.stopMachines(machineGraceMs);
    await host.remove();
  } finally {
    await child?.stop();
  }
  host.forget();
}
