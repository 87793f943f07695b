import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";

/** This host cannot run Incus; the message says why. */
export class IncusImpossible extends Error {
  override readonly name = "IncusImpossible";
}

/** The daemon, where Debian has it. */
export const incusDaemon = "/usr/libexec/incus/incusd";

/** Is the daemon on this host? */
export function isIncusInstalled(): boolean {
  return existsSync(incusDaemon);
}

const script = join(import.meta.dirname, "..", "install-incus.sh");
/** With a slow mirror; without an answer from it the script ends far sooner. */
const installWithinMs = 240_000;

/** Installs what is missing of Incus; throws IncusImpossible where that cannot be, always within four minutes. */
export async function ensureIncusSoftware(cacheDir: string, signal: AbortSignal): Promise<void> {
  if (process.getuid?.() !== 0)
    throw new IncusImpossible("Incus needs root: its machines have disks and networks of their own");
  // A group of its own: what apt started goes with it when time is up.
  const child = spawn(script, [cacheDir], { stdio: ["ignore", "pipe", "pipe"], detached: true });
  const end = () => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  };
  let said = "";
  const keep = (text: string) => {
    said = (said + text).slice(-2_000);
  };
  child.stdout.setEncoding("utf8").on("data", keep);
  child.stderr.setEncoding("utf8").on("data", keep);
  const giveUp = AbortSignal.any([signal, AbortSignal.timeout(installWithinMs)]);
  giveUp.addEventListener("abort", end, { once: true });
  try {
    const status = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    signal.throwIfAborted();
    if (giveUp.aborted) throw new IncusImpossible(`Incus was not installed within ${installWithinMs / 1_000} s`);
    if (status !== 0)
      throw new IncusImpossible(`Incus could not be installed: ${said.trim().split("\n").slice(-3).join(" / ")}`);
  } finally {
    giveUp.removeEventListener("abort", end);
  }
  await checkKernel();
}

/** Throws IncusImpossible when the kernel lacks what disks of machines need. */
async function checkKernel(): Promise<void> {
  for (const fileSystem of ["btrfs", "xfs"]) {
    // A kernel without modules has it built in, or not at all.
    await runProgram("modprobe", [fileSystem]).catch(() => undefined);
    const known = (await readFile("/proc/filesystems", "utf8")).split("\n").map((line) => line.split("\t").at(-1));
    if (!known.includes(fileSystem)) throw new IncusImpossible(`the kernel has no ${fileSystem}`);
  }
  await runProgram("losetup", ["--find"]).catch(() => {
    throw new IncusImpossible("this host has no loop devices");
  });
}
