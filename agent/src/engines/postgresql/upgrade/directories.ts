import { readdir, rename } from "node:fs/promises";
import { basename, join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { readEngineFile } from "../../../os/engine-file.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { dataDirectory } from "../layout.ts";

/**
 * An upgrade makes `postgresql.upgrade`, then `postgresql` becomes `postgresql.17` and the draft becomes `postgresql`. Which of the two
 * renames was made can be seen, so nothing else is noted.
 */
export const draftOf = (instance: Instance) => `${dataDirectory(instance)}.upgrade`;
const keptOf = (instance: Instance, version: string) => `${dataDirectory(instance)}.${version}`;
/** What pg_upgrade works in. */
export const scratchOf = (instance: Instance) => `${dataDirectory(instance)}.scratch`;
/** Being removed: no way leads back from here. */
const goneOf = (instance: Instance) => `${dataDirectory(instance)}.gone`;

/** Undefined where there is no data. */
async function versionIn(directory: string): Promise<string | undefined> {
  try {
    return (await readEngineFile(join(directory, "PG_VERSION"))).trim();
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

export async function keptVersionOf(instance: Instance): Promise<string | undefined> {
  const prefix = `${basename(dataDirectory(instance))}.`;
  const names = await readdir(instance.paths.data);
  return names
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .find(isMajor);
}

const isMajor = (text: string) => /^\d+$/.test(text);

/**
 * Version of the data, after whatever rename an agent did not live to make. Between the two both are whole and nothing ran over the
 * newer: the settings choose, and where they name neither, the older ones it is.
 */
export async function versionOf(instance: Instance): Promise<string | undefined> {
  const directory = dataDirectory(instance);
  const version = await versionIn(directory);
  const kept = await keptVersionOf(instance);
  if (version !== undefined || kept === undefined) return version;
  const draft = await versionIn(draftOf(instance));
  const isForward = draft !== undefined && draft === instance.spec.version;
  await rename(isForward ? draftOf(instance) : keptOf(instance, kept), directory);
  await syncPath(instance.paths.data);
  return isForward ? draft : kept;
}

/** The draft is whole and on the disk. */
export async function exchange(instance: Instance, from: string): Promise<void> {
  await rename(dataDirectory(instance), keptOf(instance, from));
  await rename(draftOf(instance), dataDirectory(instance));
  await syncPath(instance.paths.data);
}

export async function goBack(
  { runAsEngine: run }: EngineDeps,
  instance: Instance,
  kept: string,
  signal: AbortSignal,
): Promise<void> {
  await run(["rm", "-rf", draftOf(instance)], { signal });
  await rename(dataDirectory(instance), draftOf(instance));
  await rename(keptOf(instance, kept), dataDirectory(instance));
  await syncPath(instance.paths.data);
  await run(["rm", "-rf", draftOf(instance)], { signal });
}

/** One rename decides; whatever it and broken attempts left is removed now or by the next call. */
export async function forget({ runAsEngine: run }: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const { data } = instance.paths;
  const kept = await keptVersionOf(instance);
  const leavings = [goneOf(instance), draftOf(instance), scratchOf(instance)];
  const names = new Set(await readdir(data));
  if (kept === undefined && !leavings.some((path) => names.has(basename(path)))) return;
  await run(["rm", "-rf", ...leavings], { signal });
  if (kept === undefined) return;
  await rename(keptOf(instance, kept), goneOf(instance));
  await syncPath(data);
  await run(["rm", "-rf", goneOf(instance)], { signal });
}
