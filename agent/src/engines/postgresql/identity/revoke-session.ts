import { authSchema } from "@holdfast/common/auth-schema/names.ts";
import type { Session } from "../session.ts";

/** One statement: each session ends with every refresh token that came of it. Answers how many sessions there are. */
export async function revokeSessions(session: Session, sessionIds: readonly string[]): Promise<number> {
  const [row] = await session.rows<{ existed: number }>(
    `WITH ended AS (
       UPDATE ${authSchema}.sessions SET revoked_at = coalesce(revoked_at, now()) WHERE id = ANY($1)
       RETURNING id, user_id),
     families AS (
       UPDATE ${authSchema}.refresh_tokens SET ended_at = coalesce(ended_at, now())
       WHERE session_id IN (SELECT id FROM ended)),
     told AS (INSERT INTO ${authSchema}.events (type, user_id) SELECT 'session.revoked', user_id FROM ended)
     SELECT count(*)::int AS existed FROM ended`,
    [sessionIds],
  );
  return row?.existed ?? 0;
}
