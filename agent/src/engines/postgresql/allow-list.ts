import type { Session } from "./session.ts";
import { platform } from "./layout.ts";

/** Ends every session from an address that the list does not have. */
export async function endForbiddenSessions(session: Session, allowedCidrs: readonly string[]): Promise<void> {
  await session.rows(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE client_addr IS NOT NULL AND usename IS DISTINCT FROM $2
       AND NOT EXISTS (SELECT 1 FROM unnest($1::text[]) AS allowed WHERE client_addr <<= allowed::inet)`,
    [allowedCidrs, platform],
  );
}
