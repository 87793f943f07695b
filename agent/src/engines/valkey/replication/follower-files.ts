import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { roleOf } from "../../members.ts";
import { appendDirectory } from "../backup/restore.ts";
import { bootstrap } from "../bootstrap.ts";
import { dataDirectory } from "../layout.ts";

/** There as long as the data follow a primary: it goes, durably, before the first write of a promotion. */
const followsFile = (instance: Instance): string => join(dataDirectory(instance), "follows");
/** There once the file of a follower has had all data of its primary; it says of which history those are. */
const completeFile = (instance: Instance): string => join(dataDirectory(instance), "follows.complete");
/** Position at which a primary that was to stop took its last write. */
export const yieldedFile = (instance: Instance): string => join(dataDirectory(instance), "yielded");

export async function dataOf(instance: Instance): Promise<"follower" | "primary" | "absent"> {
  if (existsSync(followsFile(instance))) return "follower";
  return existsSync(join(appendDirectory(instance), "appendonly.aof.manifest")) ? "primary" : "absent";
}

/** The engine itself gets the data when it runs; until its own file has them, it can be nothing but a follower. */
export async function copy(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  await deps.runAsEngine(["rm", "-rf", dataDirectory(instance)], { signal });
  await bootstrap(deps, instance);
  await follow(instance);
}

/** What the primary lacks goes when the engine has the primary's data; what is there serves readers until then. */
export async function follow(instance: Instance): Promise<void> {
  await rm(completeFile(instance), { force: true });
  await writeFile(followsFile(instance), "", { flush: true });
  await rm(yieldedFile(instance), { force: true });
  await syncPath(dataDirectory(instance));
}

export function isComplete(instance: Instance): boolean {
  return existsSync(completeFile(instance));
}

/** The history whose data a follower's file has; empty before it has all of any. */
export async function fileHistory(instance: Instance): Promise<string> {
  return (await readIfThere(completeFile(instance)))?.toString("utf8") ?? "";
}

/** Its file has all data of this history. */
export async function becameComplete(instance: Instance, history: string): Promise<void> {
  if (!existsSync(followsFile(instance))) return;
  if (isComplete(instance) && (await fileHistory(instance)) === history) return;
  await writeDurably(completeFile(instance), history);
}

/** Before any write of a primary: from here on its data are nobody's but its own. Throws for a copy that did not end. */
export async function followNobody(instance: Instance): Promise<void> {
  if (roleOf(instance.spec) !== "primary") return;
  const follows = existsSync(followsFile(instance));
  if (follows && !isComplete(instance))
    throw new Error("The data is a copy that did not end: another member has to be the primary.");
  if (!follows && !existsSync(yieldedFile(instance))) return;
  await rm(yieldedFile(instance), { force: true });
  await rm(followsFile(instance), { force: true });
  await rm(completeFile(instance), { force: true });
  await syncPath(dataDirectory(instance));
}
