import type { Session } from "./session.ts";
import { platform } from "./layout.ts";
import { replicaRole } from "./replication/members.ts";

/**
 * Ends every session of a client from an address that is not on the list. Members authenticate by their certificates,
 * from any address. A session that has no user yet is still authenticating: the next look ends it.
 */
export async function endForbiddenSessions(session: Session, allowedCidrs: readonly string[]): Promise<void> {
  await session.rows(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE client_addr IS NOT NULL AND usename <> ALL ($2::text[])
       AND NOT EXISTS (SELECT 1 FROM unnest($1::text[]) AS allowed WHERE client_addr <<= allowed::inet)`,
    [allowedCidrs, [platform, replicaRole]],
  );
}
