import { endAll, killAll } from "./end-sessions.ts";
import { platform } from "./layout.ts";
import { literal, type Session } from "./session.ts";

/**
 * Condition on an account's host: it matches clients of the front. MySQL sees all of them as `localhost`. A user's
 * account is `'name'@'%'`, and MySQL prefers an account with a more specific host, or an anonymous one, to it
 * (MySQL manual, "Access Control, Stage 1").
 */
export const matchesClientsSql = (host: string): string => `(${host} = '' OR 'localhost' LIKE ${host})`;

/** Drops the accounts that the engine prefers to this user's, and ends their sessions. */
export async function dropShadowingAccounts(session: Session, username: string): Promise<void> {
  const accounts = await session.rows<{ name: string; host: string }>(
    `SELECT user AS name, host FROM mysql.user
     WHERE user = '' OR (user = ? AND BINARY user = ? AND host <> '%' AND ${matchesClientsSql("host")})`,
    [username, username],
  );
  for (const { name, host } of accounts) await dropShadowingAccount(session, name, host);
}

/**
 * Drops one such account and ends its sessions. Clients choose the user name of a session of an anonymous account, so
 * the sessions of all users end with that account.
 */
export async function dropShadowingAccount(session: Session, name: string, host: string): Promise<void> {
  await session.rows(`DROP USER IF EXISTS ${literal(name)}@${literal(host)}`);
  if (name === "") await endAll(session, `user <> ${literal(platform)}`);
  else await killAll(session, "user = ?", name);
}
