import { existsSync, rmSync } from "node:fs";
import { stopAllMachines } from "@holdfast/controller/compute/process/stop-machine.ts";
import { createBlockRegistry } from "./block-registry.ts";
import { readJson } from "./files.ts";
import type { Installation } from "./installation.ts";
import { layoutOf } from "./layout.ts";
import { machineGraceMs } from "./platform.ts";
import { isRunning } from "./process-identity.ts";
import { runningSupervisor } from "./supervisor-lock.ts";
import { UserError } from "./user-error.ts";
import type { UpDeps } from "./with-platform.ts";

/** Stops the installation of a directory, its machines too, and removes the directory with all data. */
export async function clean(dataDir: string, { clock, say, registryDir }: UpDeps): Promise<void> {
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
  await stopAllMachines(layout.root, machineGraceMs);
  rmSync(layout.root, { recursive: true, force: true, maxRetries: 3 });
  createBlockRegistry(registryDir, clock.now).release(installation.loopback_block);
  say(`${dataDir} is removed`);
}
