import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { EngineRefused } from "../../engine-errors.ts";
import type { ErasedUser, IdentityFacet, IdentityQuery, IdentityRows } from "../../identity-facet.ts";
import type { Instance } from "../../instance.ts";
import { prepareSchema } from "./prepare-schema.ts";
import { codeOf, inTransaction, refusalOf, type Session, withSession } from "../session.ts";

/**
 * End users of apps, in the schema `_mdb_auth` of a database of the app's owner. The schema belongs to a separate role
 * (prepare-schema.ts); the issuer reads and writes it through a role with privileges on its rows only.
 */
export const identity: IdentityFacet = {
  prepare: (instance, schema, signal) =>
    inDatabase(instance, schema.database, signal, (session) => prepareSchema(session, schema)),
  revoke: (instance, database, sessionId, signal) =>
    inDatabase(instance, database, signal, async (session) => (await revokeSessions(session, [sessionId])) > 0),
  erase: (instance, database, user, signal) =>
    inDatabase(instance, database, signal, (session) => eraseUser(session, user)),
  replay: (instance, database, { userIds, sessionIds }, signal) =>
    inDatabase(instance, database, signal, async (session) => ({
      erased: userIds.length === 0 ? 0 : await eraseAgain(session, userIds),
      revoked: sessionIds.length === 0 ? 0 : await revokeSessions(session, sessionIds),
    })),
  add: (instance, database, user, signal) =>
    inDatabase(instance, database, signal, (session) => addUser(session, user)),
  read: (instance, database, query, signal) =>
    inDatabase(instance, database, signal, (session) => readRows(session, query)),
};

const missingDatabase = "3D000";
const missingObject = ["3F000", "42P01"];

async function inDatabase<T>(
  instance: Instance,
  database: string,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  try {
    return await withSession(instance, signal, work, { database, statementMs: 10_000, lockMs: 3_000 });
  } catch (error) {
    const code = codeOf(error);
    if (code === missingDatabase) throw new EngineRefused(`The database ${database} does not exist.`);
    if (missingObject.includes(code)) throw new EngineRefused(`The database ${database} has no users of an app.`);
    throw refusalOf(error);
  }
}

/**
 * Creates a user; false if another user has the address. Repeating it finds the same user. ON CONFLICT avoids a
 * constraint violation, which would write the address into the log.
 */
async function addUser(
  session: Session,
  { id, email }: { readonly id: string; readonly email: string },
): Promise<boolean> {
  await session.rows(`INSERT INTO ${s}.users (id, email) VALUES ($1, $2) ON CONFLICT DO NOTHING`, [id, email]);
  const [found] = await session.rows<{ id: string }>(`SELECT id FROM ${s}.users WHERE email = $1`, [email]);
  return found?.id === id;
}

/** Statements by user ids. Tables that allow signing in come first, so that no session starts between statements. */
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
 * Erases a user in one transaction over all tables. Login tokens of an address without a user are deleted too; that
 * does not count as an erased user.
 */
function eraseUser(session: Session, user: ErasedUser): Promise<string | undefined> {
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

/** Erases these users and all remains of them, in one transaction. Returns the number of users that existed. */
function eraseAgain(session: Session, userIds: readonly string[]): Promise<number> {
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

/**
 * Query of each table with the columns that its owner may see, ordered by `key`. `$1`: last key, `$2`: user id, `$3`:
 * address.
 */
// biome-ignore format: a table, aligned so that it reads as one
const queries: Readonly<Record<IdentityQuery["table"], string>> = {
  users: `SELECT id::text AS key, id, email, email_verified, created_at, last_sign_in_at FROM ${s}.users
    WHERE ($1 = '' OR id > nullif($1, '')::uuid) AND ($2 = '' OR id = nullif($2, '')::uuid) AND ($3 = '' OR email = $3)
    ORDER BY id`,
  sessions: `SELECT id::text AS key, id, created_at, last_seen_at, expires_at, revoked_at, user_agent, ip FROM ${s}.sessions
    WHERE ($1 = '' OR id > nullif($1, '')::uuid) AND user_id = nullif($2, '')::uuid AND $3 = '' ORDER BY id`,
  events: `SELECT id::text AS key, id::text AS id, type, occurred_at, user_id, client_id, ip FROM ${s}.events
    WHERE ($1 = '' OR id < nullif($1, '')::bigint) AND ($2 = '' OR user_id = nullif($2, '')::uuid) AND $3 = ''
    ORDER BY id DESC`,
};

async function readRows(session: Session, query: IdentityQuery): Promise<IdentityRows> {
  const { table, userId, email, after, limit } = query;
  const found = await session.rows<{ key: string; row: string }>(
    `SELECT key, (to_jsonb(page) - 'key')::text AS row FROM (${queries[table]} LIMIT $4) AS page`,
    [after, userId, email, limit + 1],
  );
  const rows = found.slice(0, limit);
  return {
    rows: rows.map(({ row }) => row),
    nextAfter: found.length > limit ? (rows.at(-1)?.key ?? "") : "",
  };
}

/** Revokes sessions and all their refresh tokens in one statement. Returns the number of sessions that exist. */
async function revokeSessions(session: Session, sessionIds: readonly string[]): Promise<number> {
  const [row] = await session.rows<{ existed: number }>(
    `WITH ended AS (
       UPDATE ${s}.sessions SET revoked_at = coalesce(revoked_at, now()) WHERE id = ANY($1)
       RETURNING id, user_id),
     families AS (
       UPDATE ${s}.refresh_tokens SET ended_at = coalesce(ended_at, now())
       WHERE session_id IN (SELECT id FROM ended)),
     events_written AS (INSERT INTO ${s}.events (type, user_id) SELECT 'session.revoked', user_id FROM ended)
     SELECT count(*)::int AS existed FROM ended`,
    [sessionIds],
  );
  return row?.existed ?? 0;
}
