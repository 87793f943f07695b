import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { requireAnswer } from "@holdfast/compute/incus/incus-liveness.ts";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import type { ChildSpec } from "./child.ts";
import { readText, writeAtomically } from "./files.ts";
import { incusDaemon } from "./incus-software.ts";

/**
 * Where a daemon of our own has all that is its: database, pool, images, socket. Not in the data directory: the first
 * process of a machine is nobody on the host and must get here, which it could not below a home directory.
 */
export function incusDirectory(number: string): string {
  return join(incusDirectories, `incus-${number}`);
}

const incusDirectories = "/var/lib/holdfast";
/** Names the data directory that the daemon is for, which may be removed before it. */
const ownerFile = "holdfast-directory";

/** The data directory of the daemon of a number; undefined where none is, or where it does not say. */
export function daemonOwner(number: string): string | undefined {
  return readText(join(incusDirectory(number), ownerFile));
}

/** Numbers of installations that have a daemon of their own here, by their data directories; those that do not say have none. */
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
 * An Incus daemon of the installation's own, apart from any other of the host: it shares neither directory nor socket
 * nor network with them. Machines run on when it is killed, and the next one adopts them: so one that hangs is killed.
 * `owner` is the data directory.
 */
export function incusChild(directory: string, owner: string, environment: Readonly<Record<string, string>>): ChildSpec {
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  if (readText(join(directory, ownerFile)) !== owner) writeAtomically(join(directory, ownerFile), owner, 0o644);
  const argv = [incusDaemon, "--group", "root"];
  const [command = "", ...args] = argv;
  return {
    name: "incus",
    launch: existsSync("/proc/self") ? dyingWithParent(argv) : { command, args },
    env: { PATH: environment["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin", LANG: "C.UTF-8", INCUS_DIR: directory },
    ready: null,
    // Its word for: stop everything, unmount the pools, end.
    stopSignal: "SIGPWR",
    graceMs: 20_000,
    liveness: {
      answers: (signal) => requireAnswer(incusSocket(directory), signal),
      everyMs: 10_000,
      hangsAfterMs: 45_000,
    },
  };
}
