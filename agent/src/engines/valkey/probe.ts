import { randomUUID } from "node:crypto";
import type { Session } from "./session.ts";

/** True if writes are refused by a setting (`min-replicas-to-write`) although the engine could take them. */
function isBlocked(reason: unknown): boolean {
  return reason instanceof Error && /NOREPLICAS/.test(reason.message);
}

/** True if the engine refuses writes that need memory: the memory is full, or writes are blocked. */
export function isOutOfMemory(reason: unknown): boolean {
  return reason instanceof Error && /^OOM|EXECABORT.*OOM|previous errors.*OOM/.test(reason.message);
}

/** A durable write that no user can see: the key is created and deleted in one transaction. */
export async function probe(session: Session): Promise<void> {
  const key = `holdfast:probe:${randomUUID()}`;
  const replies = [
    session.call("MULTI"),
    session.call("SET", key, "1"),
    session.call("DEL", key),
    session.call("EXEC"),
  ];
  // The refused command has the reason; EXEC's error only reports that a command was refused.
  const refused = (await Promise.allSettled(replies)).find(({ status }) => status === "rejected");
  if (refused?.status === "rejected" && !isBlocked(refused.reason)) throw refused.reason;
}
