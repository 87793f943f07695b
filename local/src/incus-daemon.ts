import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { dyingWithParent } from "@holdfast/image/in-image.ts";
import type { ChildSpec } from "./child.ts";
import { incusDaemon } from "./incus-software.ts";

/**
 * Where a daemon of our own has all that is its: database, pool, images, socket. Not in the data directory: the first
 * process of a machine is nobody on the host and must get here, which it could not below a home directory.
 */
export function incusDirectory(number: string): string {
  return `/var/lib/holdfast/incus-${number}`;
}

export function incusSocket(directory: string): string {
  return join(directory, "unix.socket");
}

/**
 * An Incus daemon of the installation's own, apart from any other of the host: it shares neither directory nor socket nor
 * network with them. When it is killed, machines run on, and the next one finds them.
 */
export function incusChild(directory: string, environment: Readonly<Record<string, string>>): ChildSpec {
  mkdirSync(directory, { recursive: true, mode: 0o755 });
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
  };
}
