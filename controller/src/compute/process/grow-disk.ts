import { execFile } from "node:child_process";
import { truncate } from "node:fs/promises";
import { promisify } from "node:util";
import { diskFailure } from "../host/data-disk.ts";
import { refreshLoops } from "../host/loop-device.ts";
import type { MachinePaths } from "../host/machine-paths.ts";
import { isRunning, readRun } from "./machine-run.ts";

const run = promisify(execFile);

/** Makes the disk this large, online when the machine runs. The file system of one that does not run grows at its start. */
export async function growDisk(paths: MachinePaths, diskBytes: number): Promise<{ formatted: boolean }> {
  await truncate(paths.diskFile, diskBytes);
  const running = await readRun(paths.run);
  if (running?.init === undefined || !isRunning(running)) return { formatted: false };
  await refreshLoops(paths.diskFile);
  const enter = ["--target", String(running.init.pid), "--mount", "--pid"];
  const grow = "/holdfast/checkout/controller/src/compute/process/grow-data.sh";
  await run("nsenter", [...enter, "sh", grow]).catch((error: unknown) => {
    throw diskFailure("The data disk could not be grown", error);
  });
  return { formatted: true };
}
