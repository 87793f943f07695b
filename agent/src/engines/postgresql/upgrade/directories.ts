import { readdir, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readEngineFile } from "../../../os/engine-file.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { dataDirectory } from "../layout.ts";

/**
 * An upgrade builds the draft `postgresql.upgrade`, renames `postgresql` to `postgresql.17` and then the draft to
 * `postgresql`. The directory names show which rename was done last, so no other state is stored.
 */
export const draftOf = (instance: Instance) => `${dataDirectory(instance)}.upgrade`;
const retainedOf = (instance: Instance, version: string) => `${dataDirectory(instance)}.${version}`;
/** Working directory of pg_upgrade. */
export const scratchOf = (instance: Instance) => `${dataDirectory(instance)}.scratch`;
/** Data that are being removed; they are never used again. */
const deletedOf = (instance: Instance) => `${dataDirectory(instance)}.gone`;

/** Major version of the data; undefined if there are none. */
async function versionIn(directory: string): Promise<string | undefined> {
  try {
    return (await readEngineFile(join(directory, "PG_VERSION"))).trim();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

export async function retainedVersionOf(instance: Instance): Promise<string | undefined> {
  const prefix = `${basename(dataDirectory(instance))}.`;
  const names = await readdir(instance.paths.data);
  return names
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .find(isMajor);
}

const isMajor = (text: string) => /^\d+$/.test(text);

/**
 * Version of the data. Completes the renames of an agent that was killed between them. Both directories are complete
 * then and no engine ran on the newer one: the one with the version of the settings becomes current, by default the
 * older one.
 */
export async function versionOf(instance: Instance): Promise<string | undefined> {
  const directory = dataDirectory(instance);
  const version = await versionIn(directory);
  const retained = await retainedVersionOf(instance);
  if (version !== undefined || retained === undefined) return version;
  const draft = await versionIn(draftOf(instance));
  const isForward = draft !== undefined && draft === instance.spec.version;
  await rename(isForward ? draftOf(instance) : retainedOf(instance, retained), directory);
  await syncPath(instance.paths.data);
  return isForward ? draft : retained;
}

/** Makes the draft current. The draft must be complete and flushed. */
export async function exchange(instance: Instance, from: string): Promise<void> {
  await rename(dataDirectory(instance), retainedOf(instance, from));
  await rename(draftOf(instance), dataDirectory(instance));
  await syncPath(instance.paths.data);
}

export async function rollBack(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  retained: string,
  signal: AbortSignal,
): Promise<void> {
  await run(["rm", "-rf", draftOf(instance)], { signal });
  await rename(dataDirectory(instance), draftOf(instance));
  await rename(retainedOf(instance, retained), dataDirectory(instance));
  await syncPath(instance.paths.data);
  await run(["rm", "-rf", draftOf(instance)], { signal });
}

/**
 * Removes the retained data. A rename decides; files that remain of an interrupted call or a failed upgrade are removed
 * too.
 */
export async function discardRetained(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  const { data } = instance.paths;
  const retained = await retainedVersionOf(instance);
  const leftovers = [deletedOf(instance), draftOf(instance), scratchOf(instance)];
  const names = new Set(await readdir(data));
  if (retained === undefined && !leftovers.some((path) => names.has(basename(path)))) return;
  await run(["rm", "-rf", ...leftovers], { signal });
  if (retained === undefined) return;
  await rename(retainedOf(instance, retained), deletedOf(instance));
  await syncPath(data);
  await run(["rm", "-rf", deletedOf(instance)], { signal });
}
