import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { pingIncus } from "@holdfast/compute/incus/incus-client.ts";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import type { ChildSpec } from "./child.ts";
import { readText, replaceFileSync } from "./files.ts";

/**
 * Directory of the installation's Incus daemon: database, pool, images, socket. It is outside of the data directory:
 * the first process of a machine is `nobody` on the host and must access it, which it could not below a home directory.
 */
export function incusDirectory(number: string): string {
  return join(incusDirectories, `incus-${number}`);
}

const incusDirectories = "/var/lib/holdfast";
/** File with the path of the daemon's data directory, which may be removed before the daemon. */
const ownerFile = "holdfast-directory";

/** Data directory of the daemon with a number; undefined if there is no daemon, or no such file. */
export function daemonOwner(number: string): string | undefined {
  return readText(join(incusDirectory(number), ownerFile));
}

/** Numbers of the Incus daemons of installations, by data directory; a daemon without the file is not included. */
export function daemonOwners(above = incusDirectories): Map<string, string> {
  const names = existsSync(above) ? readdirSync(above) : [];
  return new Map(
    names.flatMap((name) => {
      const number = /^incus-(\d+)$/.exec(name)?.[1];
      const owner = readText(join(above, name, ownerFile));
      return number === undefined || owner === undefined ? [] : [[owner, number] as const];
    }),
  );
}

export function incusSocket(directory: string): string {
  return join(directory, "unix.socket");
}

/**
 * The installation's own Incus daemon, which shares neither directory nor socket nor network with other daemons of the
 * host. Machines continue when the daemon is killed, and the next daemon adopts them, so a hanging one is killed.
 * `owner` is the data directory.
 */
export function incusChild(directory: string, owner: string, environment: Readonly<Record<string, string>>): ChildSpec {
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  if (readText(join(directory, ownerFile)) !== owner) replaceFileSync(join(directory, ownerFile), owner, 0o644);
  const argv = [incusDaemon, "--group", "root"];
  const [command = "", ...args] = argv;
  return {
    name: "incus",
    launch: existsSync("/proc/self") ? dyingWithParent(argv) : { command, args },
    env: { PATH: environment["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8", INCUS_DIR: directory },
    ready: null,
    // Makes incusd stop all instances, unmount its pools, and exit.
    stopSignal: "SIGPWR",
    graceMs: 20_000,
    liveness: {
      probe: (signal) => pingIncus(incusSocket(directory), signal),
      intervalMs: 10_000,
      hangsAfterMs: 45_000,
    },
  };
}

/** The error of a host that cannot run Incus. The message has the reason. */
export class IncusImpossible extends Error {
  override readonly name = "IncusImpossible";
}

/** Path of the daemon in Debian's package. */
const incusDaemon = "/usr/libexec/incus/incusd";

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
