import { killAll } from "./end-sessions.ts";
import { isPlatformNameSql } from "./platform-accounts.ts";
import type { Session } from "./session.ts";

/** Ends the sessions of all users. */
export async function endUserSessions(session: Session): Promise<void> {
  await killAll(session, `NOT ${isPlatformNameSql("user")}`);
}

/**
 * Ends users' sessions without TLS, and sessions at the peer port of an engine that an agent without the front of that
 * port started. `init_connect` ends neither if the password is expired.
 */
export async function endRefusedSessions(session: Session): Promise<void> {
  const atPeerPort = "(host NOT LIKE 'localhost%' AND host <> '')";
  const isPlain =
    "id IN (SELECT t.processlist_id FROM performance_schema.threads t WHERE t.connection_type IN ('Socket', 'TCP/IP'))";
  await killAll(session, `NOT ${isPlatformNameSql("user")} AND (${atPeerPort} OR ${isPlain})`);
}
