import { truncate } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { runProgram } from "@holdfast/common/run-program.ts";
import { diskFailure } from "../local/data-disk.ts";
import { refreshLoops } from "../local/loop-device.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { canEnter, type MachineRun, readRun } from "./machine-run.ts";

const [endTimeoutMs, pollIntervalMs] = [2_000, 20];

/** Grows the disk, online if the machine runs; otherwise the file system grows at the next start. */
export async function growDisk(paths: MachinePaths, diskBytes: number): Promise<{ formatted: boolean }> {
  await truncate(paths.diskFile, diskBytes);
  const running = await readRun(paths.run);
  if (running?.init === undefined || !canEnter(running)) return { formatted: false };
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

/** True if the machine ends within 2 s. The kernel kills all its programs before its first process has ended. */
async function endsSoon(running: MachineRun): Promise<boolean> {
  for (let waitedMs = 0; canEnter(running); waitedMs += pollIntervalMs) {
    if (waitedMs >= endTimeoutMs) return false;
    await sleep(pollIntervalMs);
  }
  return true;
}
