import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { AskedRows, IdentityRows } from "../../identity-facet.ts";
import type { Session } from "../session.ts";

/** Of each table: columns that its owner is shown, in the order of a key; `$1` is the last key, `$2` a user, `$3` an address. */
// biome-ignore format: a table, aligned so that it reads as one
const queries: Readonly<Record<AskedRows["table"], string>> = {
  users: `SELECT id::text AS key, id, email, email_verified, created_at, last_sign_in_at FROM ${s}.users
    WHERE ($1 = '' OR id > nullif($1, '')::uuid) AND ($2 = '' OR id = nullif($2, '')::uuid) AND ($3 = '' OR email = $3)
    ORDER BY id`,
  sessions: `SELECT id::text AS key, id, created_at, last_seen_at, expires_at, revoked_at, user_agent, ip FROM ${s}.sessions
    WHERE ($1 = '' OR id > nullif($1, '')::uuid) AND user_id = nullif($2, '')::uuid AND $3 = '' ORDER BY id`,
  events: `SELECT id::text AS key, id::text AS id, type, occurred_at, user_id, client_id, ip FROM ${s}.events
    WHERE ($1 = '' OR id < nullif($1, '')::bigint) AND ($2 = '' OR user_id = nullif($2, '')::uuid) AND $3 = ''
    ORDER BY id DESC`,
};

export async function readRows(session: Session, asked: AskedRows): Promise<IdentityRows> {
  const { table, userId, email, after, limit } = asked;
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
