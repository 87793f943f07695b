import { randomUUID } from "node:crypto";
import type { Session } from "./session.ts";

/** Writes are refused because that is a setting: the engine would take them. */
function isBlocked(reason: unknown): boolean {
  return reason instanceof Error && /NOREPLICAS/.test(reason.message);
}

/** The engine takes no write that needs memory: it has none left, or its writes are blocked. */
export function isOutOfMemory(reason: unknown): boolean {
  return reason instanceof Error && /^OOM|EXECABORT.*OOM|previous errors.*OOM/.test(reason.message);
}

/** A write that goes to disk like any other and that no user ever sees or meets: the key is new and gone in one step. */
export async function probe(session: Session): Promise<void> {
  const key = `holdfast:probe:${randomUUID()}`;
  const answers = [
    session.call("MULTI"),
    session.call("SET", key, "1"),
    session.call("DEL", key),
    session.call("EXEC"),
  ];
  // The refused command has the reason; the error of EXEC only says that a command was refused.
  const refused = (await Promise.allSettled(answers)).find(({ status }) => status === "rejected");
  if (refused?.status === "rejected" && !isBlocked(refused.reason)) throw refused.reason;
}
