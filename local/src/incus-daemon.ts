import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pingIncus } from "@holdfast/compute/incus/incus-client.ts";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import type { ChildSpec } from "./child.ts";
import { readText, replaceFileSync } from "./files.ts";
import { incusDaemon } from "./incus-software.ts";

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
