import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { ErasedUser } from "../../identity-facet.ts";
import { inTransaction } from "../queue/transaction.ts";
import type { Session } from "../session.ts";

/** Each by ids of users; the tables that users sign in by first, so that nobody comes in while the rest goes. */
const ofUser: readonly string[] = [
  `UPDATE ${s}.sessions SET revoked_at = coalesce(revoked_at, now()) WHERE user_id = ANY($1)`,
  `DELETE FROM ${s}.refresh_tokens WHERE user_id = ANY($1)`,
  `DELETE FROM ${s}.oauth_codes WHERE user_id = ANY($1)`,
  `DELETE FROM ${s}.sessions WHERE user_id = ANY($1)`,
  `DELETE FROM ${s}.mfa_recovery_codes WHERE user_id = ANY($1)`,
  `DELETE FROM ${s}.mfa_totp WHERE user_id = ANY($1)`,
  `DELETE FROM ${s}.identities WHERE user_id = ANY($1)`,
  `UPDATE ${s}.events SET user_id = NULL, ip = NULL, user_agent = NULL WHERE user_id = ANY($1)`,
  `DELETE FROM ${s}.users WHERE id = ANY($1)`,
];

/**
 * One transaction over all nine tables. An address whose owner never signed in has mails that are owed to it: they go too, and
 * nobody was erased by that.
 */
export function eraseUser(session: Session, user: ErasedUser): Promise<string | undefined> {
  return inTransaction(session, async () => {
    const [column, value] = "userId" in user ? ["id", user.userId] : ["email", user.email];
    const [found] = await session.rows<{ id: string; email: string }>(
      `SELECT id, email FROM ${s}.users WHERE ${column} = $1 FOR UPDATE`,
      [value],
    );
    const email = found?.email ?? ("email" in user ? user.email : undefined);
    if (email !== undefined) await session.rows(`DELETE FROM ${s}.login_tokens WHERE email = $1`, [email]);
    if (found === undefined) return undefined;
    for (const statement of ofUser) await session.rows(statement, [[found.id]]);
    return found.id;
  });
}

/** Erases those of the users that are there, and what is left of the others, in one transaction; answers how many were there. */
export function eraseAgain(session: Session, userIds: readonly string[]): Promise<number> {
  return inTransaction(session, async () => {
    const found = await session.rows<{ email: string }>(
      `SELECT email FROM ${s}.users WHERE id = ANY($1) ORDER BY id FOR UPDATE`,
      [userIds],
    );
    const emails = found.map(({ email }) => email);
    await session.rows(`DELETE FROM ${s}.login_tokens WHERE email = ANY($1)`, [emails]);
    for (const statement of ofUser) await session.rows(statement, [userIds]);
    return found.length;
  });
}
