import { authSchema } from "@holdfast/common/auth-schema/names.ts";
import type { Session } from "../session.ts";

/** One statement: the session ends with every refresh token that came of it. */
export async function revokeSession(session: Session, sessionId: string): Promise<boolean> {
  const [row] = await session.rows<{ existed: boolean }>(
    `WITH ended AS (
       UPDATE ${authSchema}.sessions SET revoked_at = coalesce(revoked_at, now()) WHERE id = $1 RETURNING id, user_id),
     families AS (
       UPDATE ${authSchema}.refresh_tokens SET ended_at = coalesce(ended_at, now())
       WHERE session_id IN (SELECT id FROM ended)),
     told AS (INSERT INTO ${authSchema}.events (type, user_id) SELECT 'session.revoked', user_id FROM ended)
     SELECT EXISTS (SELECT FROM ended) AS existed`,
    [sessionId],
  );
  return row?.existed === true;
}
