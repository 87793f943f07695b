import { endAll, killAll } from "./end-sessions.ts";
import { platform } from "./layout.ts";
import { literal, type Session } from "./session.ts";

/**
 * Every client is `localhost` to the engine, so an account of a user is `'name'@'%'` and nothing else: the engine takes
 * an account of a more exact host in its place, and an anonymous one in place of any.
 */
export const matchesClientsSql = (host: string): string => `(${host} = '' OR 'localhost' LIKE ${host})`;

/** Drops the accounts that the engine takes in place of this user's, with their sessions. */
export async function removeRivals(session: Session, username: string): Promise<void> {
  const rivals = await session.rows<{ name: string; host: string }>(
    `SELECT user AS name, host FROM mysql.user
     WHERE user = '' OR (user = ? AND BINARY user = ? AND host <> '%' AND ${matchesClientsSql("host")})`,
    [username, username],
  );
  for (const { name, host } of rivals) await dropRival(session, name, host);
}

/** A session of an anonymous account has any name, so those of all users end. */
export async function dropRival(session: Session, name: string, host: string): Promise<void> {
  await session.rows(`DROP USER IF EXISTS ${literal(name)}@${literal(host)}`);
  if (name === "") await endAll(session, `user <> ${literal(platform)}`);
  else await killAll(session, "user = ?", name);
}
