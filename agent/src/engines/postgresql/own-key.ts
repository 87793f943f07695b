import { stat } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { Instance } from "../engine-driver.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { ownKeyFile } from "./layout.ts";

/** The machine's key, and a copy that is the engine's own. A copy has the time of what it was made from. */
export interface KeyFiles {
  readonly key: string;
  readonly copy: string;
}

export function keyFiles(instance: Instance, copy = ownKeyFile(instance)): KeyFiles {
  return { key: join(instance.paths.tls, "server.key"), copy };
}

/** The words before a program's: it has its key when it begins. */
export function withOwnKey({ key, copy }: KeyFiles): string[] {
  return ["/bin/sh", "-c", 'install -m 600 -p "$0" "$1" && shift && exec "$@"', key, copy];
}

/** Gives what runs its copy of the key on disk; nothing happens when it has it. */
export async function takeKey(
  { runAsEngine }: EngineDeps,
  { key, copy }: KeyFiles,
  signal: AbortSignal,
): Promise<void> {
  if ((await writtenAt(key)) === (await writtenAt(copy))) return;
  await runAsEngine(["install", "-m", "600", "-p", key, copy], { signal });
}

/** Time of the content, which a copy keeps; undefined when there is no such file. */
async function writtenAt(path: string): Promise<bigint | undefined> {
  try {
    return (await stat(path, { bigint: true })).mtimeNs;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
