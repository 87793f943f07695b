import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { App } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, json, Refused } from "../http/messages.ts";
import { tokenError } from "./client-authentication.ts";
import { readRefreshToken, tokensOf } from "./tokens.ts";

const idleDays = 30;
/** Time in which the same successor is returned again, for lost responses and concurrent tabs. */
const graceS = 30;

const columns = `family.user_id, family.session_id, family.scope, family.generation, session.auth_time, session.amr, users.email,
  users.email_verified`;
const live = `family.ended_at IS NULL AND family.expires_at > now() AND session.revoked_at IS NULL
  AND family.rotated_at > now() - interval '${idleDays} days'`;

/**
 * Rotates a token in one conditional UPDATE. A token ahead of its row is authentic: its HMAC is valid, and a failover
 * lost the last rotations.
 */
const rotate = `
  UPDATE ${s}.refresh_tokens AS family SET generation = $2 + 1, rotated_at = now()
  FROM ${s}.sessions AS session, ${s}.users AS users
  WHERE family.family = $1 AND family.generation <= $2 AND family.client_id = $3
    AND session.id = family.session_id AND users.id = family.user_id AND ${live}
  RETURNING ${columns}`;

/** Returns the current successor again, within the grace time. */
const repeatRotation = `
  SELECT ${columns} FROM ${s}.refresh_tokens AS family
  JOIN ${s}.sessions AS session ON session.id = family.session_id JOIN ${s}.users AS users ON users.id = family.user_id
  WHERE family.family = $1 AND family.generation = $2 + 1 AND family.client_id = $3 AND ${live}
    AND family.rotated_at > now() - interval '${graceS} seconds'`;

/** Reuse of an older token means that it or its successor was stolen, so the session ends (RFC 9700 section 4.14.2). */
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
export async function refresh(app: App, { form, source }: IncomingRequest, client: Client): Promise<OutgoingResponse> {
  const { database, keys } = app;
  const { clientId } = client;
  const presented = form.get("refresh_token") ?? "";
  if (presented === "") throw new Refused(tokenError("invalid_request", "refresh_token is missing"));
  const token = readRefreshToken(presented, keys);
  const invalid = () =>
    new Refused(tokenError("invalid_grant", "the refresh token has expired, was used, or is invalid"));
  if (token === undefined) throw invalid();
  const rowKey = [token.family, token.generation, clientId];
  const [row] = await database.tokens.rows<Family>(rotate, rowKey);
  const [found] = row === undefined ? await database.tokens.rows<Family>(repeatRotation, rowKey) : [row];
  if (found === undefined) {
    await database.tokens.rows(endStolen, [token.family, clientId, token.generation, source]);
    throw invalid();
  }
  const scope = narrowedScope(found.scope, form.get("scope"));
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

/** The requested scope, which must be a subset of the granted one. Throws Refused `invalid_scope`. */
function narrowedScope(granted: string, incoming: string | null): string {
  if (incoming === null || incoming === "") return granted;
  const all = granted.split(" ");
  const scopes = [...new Set(incoming.split(" "))];
  if (scopes.every((scope) => all.includes(scope))) return scopes.join(" ");
  throw new Refused(tokenError("invalid_scope", "the scope exceeds the granted one"));
}
