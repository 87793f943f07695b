import { stat } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { Instance } from "../engine-driver.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { ownKeyFile } from "./layout.ts";

/** The machine's key, and a copy owned by the engine's user. The copy has the modification time of its original. */
export interface KeyFiles {
  readonly key: string;
  readonly copy: string;
}

export function keyFiles(instance: Instance, copy = ownKeyFile(instance)): KeyFiles {
  return { key: join(instance.paths.tls, "server.key"), copy };
}

/** Prefix of a command line that copies the key before the program starts. */
export function keyCopyArgv({ key, copy }: KeyFiles): string[] {
  return ["/bin/sh", "-c", 'install -m 600 -p "$0" "$1" && shift && exec "$@"', key, copy];
}

/** Updates the copy of a running program; does nothing if it is current. */
export async function updateKeyCopy(
  { runAsEngine }: EngineDeps,
  { key, copy }: KeyFiles,
  signal: AbortSignal,
): Promise<void> {
  if ((await modifiedAt(key)) === (await modifiedAt(copy))) return;
  await runAsEngine(["install", "-m", "600", "-p", key, copy], { signal });
}

/** Modification time, which `install -p` preserves; undefined if there is no such file. */
async function modifiedAt(path: string): Promise<bigint | undefined> {
  try {
    return (await stat(path, { bigint: true })).mtimeNs;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
