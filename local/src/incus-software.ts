import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";

/** The error of a host that cannot run Incus. The message has the reason. */
export class IncusImpossible extends Error {
  override readonly name = "IncusImpossible";
}

/** Path of the daemon in Debian's package. */
export const incusDaemon = "/usr/libexec/incus/incusd";

/** True if the daemon is installed. */
export function isIncusInstalled(): boolean {
  return existsSync(incusDaemon);
}

const script = join(import.meta.dirname, "..", "install-incus.sh");
/** Time limit with a slow mirror; the script fails much earlier if the mirror does not respond. */
const installTimeoutMs = 240_000;

/** Installs the missing packages of Incus, within four minutes; throws IncusImpossible if that fails. */
export async function ensureIncusSoftware(cacheDir: string, signal: AbortSignal): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new IncusImpossible("Incus needs root, because it creates disks and networks for machines");
  // A separate process group, so that a kill includes apt's processes.
  const child = spawn(script, [cacheDir], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const end = () => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  };
  let output = "";
  const append = (text: string) => {
    output = (output + text).slice(-2_000);
  };
  child.stdout.setEncoding("utf8").on("data", append);
  child.stderr.setEncoding("utf8").on("data", append);
  const giveUp = AbortSignal.any([signal, AbortSignal.timeout(installTimeoutMs)]);
  giveUp.addEventListener("abort", end, { once: true });
  try {
    const status = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    signal.throwIfAborted();
    if (giveUp.aborted) throw new IncusImpossible(`Incus was not installed within ${installTimeoutMs / 1_000} s`);
    if (status !== 0)
      throw new IncusImpossible(`Incus could not be installed: ${output.trim().split("\n").slice(-3).join(" / ")}`);
  } finally {
    giveUp.removeEventListener("abort", end);
  }
  await checkKernel();
}

/** Throws IncusImpossible if the kernel lacks a feature that machines' disks need. */
async function checkKernel(): Promise<void> {
  for (const fileSystem of ["btrfs", "xfs"]) {
    // A kernel without modules has the file system built in, or does not have it.
    await runProgram("modprobe", [fileSystem]).catch(() => undefined);
    const fileSystems = (await readFile("/proc/filesystems", "utf8"))
      .split("\n")
      .map((line) => line.split("\t").at(-1));
    if (!fileSystems.includes(fileSystem)) throw new IncusImpossible(`the kernel has no ${fileSystem}`);
  }
  await runProgram("losetup", ["--find"]).catch(() => {
    throw new IncusImpossible("this host has no loop devices");
  });
}
