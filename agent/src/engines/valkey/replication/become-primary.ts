import type { Instance } from "../../engine-driver.ts";
import { parseInfo } from "../info.ts";
import type { Session } from "../session.ts";
import { holdUsersTo } from "../users.ts";
import { fileHistory, followNobody } from "./follower-files.ts";
import { isInFile } from "./status.ts";

/** Has an engine that answers take writes; nothing happens to one that does. Its file goes on as it is. */
export async function becomePrimary(instance: Instance, session: Session): Promise<void> {
  if (instance.spec.replication === undefined) return;
  const info = parseInfo(String(await session.call("INFO", "replication", "persistence")));
  const follows = info.get("role") === "slave";
  if (follows) {
    await requireFile(instance, info);
    await holdUsersTo(session, instance.spec.users);
  }
  await followNobody(instance);
  if (follows) await session.call("REPLICAOF", "NO", "ONE");
  // An old primary whose writes were paused for a switchover may be the primary again.
  await session.call("CLIENT", "UNPAUSE");
}

/** A write that comes while the file is written anew would be in none that a start reads. */
async function requireFile(instance: Instance, info: ReadonlyMap<string, string>): Promise<void> {
  if (isInFile(info) || (await fileHistory(instance)) === info.get("master_replid")) return;
  throw new Error("The file does not have all of the data yet.");
}
