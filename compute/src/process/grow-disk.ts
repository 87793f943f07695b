import { truncate } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { runProgram } from "@holdfast/common/run-program.ts";
import { diskFailure } from "../local/data-disk.ts";
import { refreshLoops } from "../local/loop-device.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { hasInside, type MachineRun, readRun } from "./machine-run.ts";

const [endsWithinMs, lookEveryMs] = [2_000, 20];

/** Makes the disk this large, online when the machine runs. The file system of one that does not run grows at its start. */
export async function growDisk(paths: MachinePaths, diskBytes: number): Promise<{ formatted: boolean }> {
  await truncate(paths.diskFile, diskBytes);
  const running = await readRun(paths.run);
  if (running?.init === undefined || !hasInside(running)) return { formatted: false };
  await refreshLoops(paths.diskFile);
  const enter = ["--target", String(running.init.pid), "--mount", "--pid"];
  const grow = "/holdfast/checkout/compute/src/process/grow-data.sh";
  try {
    await runProgram("nsenter", [...enter, "sh", grow]);
    return { formatted: true };
  } catch (error) {
    if (await endsSoon(running)) return { formatted: false };
    throw diskFailure("The data disk could not be grown", error);
  }
}

/** Has the machine ended, or is it ending? The kernel kills every program in it before its first process is gone. */
async function endsSoon(running: MachineRun): Promise<boolean> {
  for (let lookedMs = 0; hasInside(running); lookedMs += lookEveryMs) {
    if (lookedMs >= endsWithinMs) return false;
    await sleep(lookEveryMs);
  }
  return true;
}
