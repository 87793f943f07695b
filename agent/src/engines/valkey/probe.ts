import { randomUUID } from "node:crypto";
import type { Session } from "./session.ts";

/** A write that goes to disk like any other and that no user ever sees or meets: the key is new and gone in one step. */
export async function probe(session: Session): Promise<void> {
  const key = `holdfast:probe:${randomUUID()}`;
  const answers = [
    session.call("MULTI"),
    session.call("SET", key, "1"),
    session.call("DEL", key),
    session.call("EXEC"),
  ];
  // One that is refused tells why; EXEC only says that one was.
  const refused = (await Promise.allSettled(answers)).find(({ status }) => status === "rejected");
  if (refused?.status === "rejected") throw refused.reason;
}
