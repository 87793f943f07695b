import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { App } from "../app.ts";
import { type Answer, type Asked, json, Refused } from "../http/exchange.ts";
import { tokenError } from "./client-authentication.ts";
import { readRefreshToken } from "./refresh-token.ts";
import { tokensOf } from "./tokens.ts";

const idleDays = 30;
/** An answer that was lost is given again for so long, and two tabs get the same successor. */
const graceS = 30;

const facts = `family.user_id, family.session_id, family.scope, family.generation, session.auth_time, session.amr, users.email,
  users.email_verified`;
const live = `family.ended_at IS NULL AND family.expires_at > now() AND session.revoked_at IS NULL
  AND family.rotated_at > now() - interval '${idleDays} days'`;

/**
 * One conditional UPDATE. A token that is ahead of its row is genuine: a failover lost what came last, and nobody else could
 * have made its HMAC.
 */
const rotate = `
  UPDATE ${s}.refresh_tokens AS family SET generation = $2 + 1, rotated_at = now()
  FROM ${s}.sessions AS session, ${s}.users AS users
  WHERE family.family = $1 AND family.generation <= $2 AND family.client_id = $3
    AND session.id = family.session_id AND users.id = family.user_id AND ${live}
  RETURNING ${facts}`;

/** The successor of a moment ago, once more. */
const again = `
  SELECT ${facts} FROM ${s}.refresh_tokens AS family
  JOIN ${s}.sessions AS session ON session.id = family.session_id JOIN ${s}.users AS users ON users.id = family.user_id
  WHERE family.family = $1 AND family.generation = $2 + 1 AND family.client_id = $3 AND ${live}
    AND family.rotated_at > now() - interval '${graceS} seconds'`;

/** A token of before was stolen, or its successor was: both ends of it lose the session. */
const endStolen = `
  WITH stolen AS (
    UPDATE ${s}.refresh_tokens SET ended_at = now()
    WHERE family = $1 AND client_id = $2 AND ended_at IS NULL AND generation > $3 RETURNING session_id, user_id),
  session AS (
    UPDATE ${s}.sessions SET revoked_at = coalesce(revoked_at, now()) WHERE id IN (SELECT session_id FROM stolen)),
  siblings AS (
    UPDATE ${s}.refresh_tokens SET ended_at = coalesce(ended_at, now())
    WHERE session_id IN (SELECT session_id FROM stolen) AND family <> $1)
  INSERT INTO ${s}.events (type, user_id, client_id, ip) SELECT 'refresh_token.reused', user_id, $2, $4 FROM stolen`;

interface Family {
  readonly user_id: string;
  readonly session_id: string;
  readonly scope: string;
  readonly generation: number;
  readonly auth_time: Date;
  readonly amr: string[];
  readonly email: string;
  readonly email_verified: boolean;
}

/** grant_type refresh_token (RFC 6749 section 6, RFC 9700 section 4.14). Throws Refused `invalid_grant`. */
export async function refresh(app: App, { form, source }: Asked, client: Client): Promise<Answer> {
  const { database, keys } = app;
  const { clientId } = client;
  const given = form.get("refresh_token") ?? "";
  if (given === "") throw new Refused(tokenError("invalid_request", "refresh_token is missing"));
  const token = readRefreshToken(given, keys);
  const invalid = () => new Refused(tokenError("invalid_grant", "the refresh token is over, was used, or is none"));
  if (token === undefined) throw invalid();
  const which = [token.family, token.generation, clientId];
  const [row] = await database.tokens.rows<Family>(rotate, which);
  const [found] = row === undefined ? await database.tokens.rows<Family>(again, which) : [row];
  if (found === undefined) {
    await database.tokens.rows(endStolen, [token.family, clientId, token.generation, source]);
    throw invalid();
  }
  const scope = narrowed(found.scope, form.get("scope"));
  return json(
    200,
    await tokensOf(app, {
      userId: found.user_id,
      email: found.email,
      emailVerified: found.email_verified,
      sessionId: found.session_id,
      authTime: found.auth_time,
      amr: found.amr,
      clientId,
      scope,
      refresh: { family: token.family, generation: token.generation + 1 },
    }),
  );
}

/** Less than was granted, never more. Throws Refused `invalid_scope`. */
function narrowed(granted: string, asked: string | null): string {
  if (asked === null || asked === "") return granted;
  const all = granted.split(" ");
  const scopes = [...new Set(asked.split(" "))];
  if (scopes.every((scope) => all.includes(scope))) return scopes.join(" ");
  throw new Refused(tokenError("invalid_scope", "the scope has more than was granted"));
}
