import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { roleOf } from "../../members.ts";
import { bootstrap } from "../bootstrap.ts";
import { appendDirectory, dataDirectory } from "../layout.ts";

/** Marker: exists while the data follow a primary. It is removed durably before the first write of a promotion. */
const followsFile = (instance: Instance): string => join(dataDirectory(instance), "follows");
/**
 * Marker file. It exists once a follower's append-only file contains all data of its primary; the content is the
 * replication id of the data.
 */
const completeFile = (instance: Instance): string => join(dataDirectory(instance), "follows.complete");
/** Position and replication id of a primary's last write before its clean shutdown. */
export const stopPositionFile = (instance: Instance): string => join(dataDirectory(instance), "yielded");

export async function dataRole(instance: Instance): Promise<"follower" | "primary" | "absent"> {
  if (existsSync(followsFile(instance))) return "follower";
  return existsSync(join(appendDirectory(instance), "appendonly.aof.manifest")) ? "primary" : "absent";
}

/**
 * Empties the data. The engine copies the primary's data itself once it runs; until its append-only file contains them,
 * this member can only be a follower.
 */
export async function copy(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  await deps.runAsEngine(["rm", "-rf", dataDirectory(instance)], { signal });
  await bootstrap(deps, instance);
  await startFollowing(instance);
}

/**
 * Makes the data follow a primary. The engine replaces them when it receives the primary's; until then they serve
 * readers.
 */
export async function startFollowing(instance: Instance): Promise<void> {
  await rm(completeFile(instance), { force: true });
  await writeFile(followsFile(instance), "", { flush: true });
  await rm(stopPositionFile(instance), { force: true });
  await syncPath(dataDirectory(instance));
}

export function isComplete(instance: Instance): boolean {
  return existsSync(completeFile(instance));
}

/** Replication id of the data in a follower's append-only file; empty until the file contains all of them. */
export async function completeHistory(instance: Instance): Promise<string> {
  return (await readIfExists(completeFile(instance)))?.toString("utf8") ?? "";
}

/** Records that the follower's append-only file contains all data of this replication id. */
export async function markComplete(instance: Instance, history: string): Promise<void> {
  if (!existsSync(followsFile(instance))) return;
  if (isComplete(instance) && (await completeHistory(instance)) === history) return;
  await writeDurably(completeFile(instance), history);
}

/** Makes the data independent of any primary, before the first write. Throws for an incomplete copy. */
export async function stopFollowing(instance: Instance): Promise<void> {
  if (roleOf(instance.spec) !== "primary") return;
  const follows = existsSync(followsFile(instance));
  if (follows && !isComplete(instance))
    throw new Error("The data are an incomplete copy: another member has to be the primary.");
  if (!follows && !existsSync(stopPositionFile(instance))) return;
  await rm(stopPositionFile(instance), { force: true });
  await rm(followsFile(instance), { force: true });
  await rm(completeFile(instance), { force: true });
  await syncPath(dataDirectory(instance));
}
