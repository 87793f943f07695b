import { createHash, randomBytes, randomUUID } from "node:crypto";
import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import type { App } from "../app.ts";
import type { DerivedKeys } from "../derived-keys.ts";
import { type OutgoingResponse, type IncomingRequest, json, Refused } from "../http/messages.ts";
import type { AuthorizeRequest } from "./authorize-request.ts";
import { tokenError } from "./client-authentication.ts";
import { tokensOf } from "./tokens.ts";

/** Lifetime of a code. */
const codeLifetimeS = 60;
const refreshLifetimeDays = 90;

const codeHash = (code: string): Buffer => createHash("sha256").update(code).digest();

/** Stores a code for the client's request and the user's session. */
export async function writeCode(
  { database }: App,
  code: string,
  request: AuthorizeRequest,
  session: { readonly id: string; readonly userId: string },
): Promise<void> {
  const { clientId, redirectUri, scope, nonce, challenge } = request;
  await database.rows(
    `INSERT INTO ${s}.oauth_codes (code_hash, user_id, session_id, client_id, redirect_uri, scope, nonce, code_challenge, family, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now() + interval '${codeLifetimeS} seconds')`,
    [
      codeHash(code),
      session.userId,
      session.id,
      clientId,
      redirectUri,
      scope,
      nonce ?? null,
      challenge ?? null,
      randomUUID(),
    ],
  );
}

/**
 * Redeems a code in one statement, so that one of several concurrent requests succeeds; it also creates the family of
 * refresh tokens. The redirect URI and verifier must match the authorization request; a mismatch uses the code up.
 */
const useCode = `
  WITH code AS (
    UPDATE ${s}.oauth_codes SET used_at = now()
    WHERE code_hash = $1 AND client_id = $2 AND used_at IS NULL AND expires_at > now()
    RETURNING *, redirect_uri = $3 AND code_challenge IS NOT DISTINCT FROM $4 AS fits),
  family AS (
    INSERT INTO ${s}.refresh_tokens (family, user_id, session_id, client_id, scope, expires_at)
    SELECT code.family, code.user_id, session_id, client_id, scope, now() + interval '${refreshLifetimeDays} days' FROM code
    JOIN ${s}.sessions AS session ON session.id = session_id AND revoked_at IS NULL
    WHERE fits AND 'offline_access' = ANY (string_to_array(scope, ' '))),
  event AS (
    INSERT INTO ${s}.events (type, user_id, client_id, ip) SELECT 'token.issued', user_id, client_id, $5 FROM code WHERE fits)
  SELECT code.fits, code.user_id, code.session_id, code.scope, code.nonce, code.family, session.auth_time, session.amr,
    users.email, users.email_verified, session.revoked_at IS NULL AND session.expires_at > now() AS is_live
  FROM code JOIN ${s}.sessions AS session ON session.id = code.session_id JOIN ${s}.users ON users.id = code.user_id`;

/** A reused code may be stolen, so its refresh tokens are revoked (RFC 6749 section 4.1.2). */
const endReused = `
  WITH ended AS (
    UPDATE ${s}.refresh_tokens SET ended_at = coalesce(ended_at, now())
    WHERE family = (SELECT family FROM ${s}.oauth_codes WHERE code_hash = $1 AND client_id = $2 AND used_at IS NOT NULL)
    RETURNING user_id)
  INSERT INTO ${s}.events (type, user_id, client_id, ip) SELECT 'code.reused', user_id, $2, $3 FROM ended`;

interface UsedCode {
  readonly fits: boolean;
  readonly is_live: boolean;
  readonly user_id: string;
  readonly session_id: string;
  readonly scope: string;
  readonly nonce: string | null;
  readonly family: string;
  readonly auth_time: Date;
  readonly amr: string[];
  readonly email: string;
  readonly email_verified: boolean;
}

/** grant_type authorization_code (RFC 6749 section 4.1.3, RFC 7636 section 4.6). Throws Refused `invalid_grant`. */
export async function exchangeCode(
  app: App,
  { form, source }: IncomingRequest,
  client: Client,
): Promise<OutgoingResponse> {
  const code = form.get("code") ?? "";
  if (code === "") throw new Refused(tokenError("invalid_request", "code is missing"));
  const invalid = () =>
    new Refused(tokenError("invalid_grant", "the code has expired, was used, or belongs to another request"));
  const verifier = form.get("code_verifier");
  if (verifier !== null && !/^[A-Za-z0-9._~-]{43,128}$/.test(verifier))
    throw new Refused(tokenError("invalid_request", "code_verifier is invalid"));
  if (!isIssuedCode(code, app.keys)) throw invalid();
  const challenge = verifier === null ? null : createHash("sha256").update(verifier).digest("base64url");
  const { clientId } = client;
  const hash = codeHash(code);
  const [used] = await app.database.tokens.rows<UsedCode>(useCode, [
    hash,
    clientId,
    form.get("redirect_uri") ?? "",
    challenge,
    source,
  ]);
  if (used === undefined) await app.database.tokens.rows(endReused, [hash, clientId, source]);
  if (used?.fits !== true || !used.is_live) throw invalid();
  const isOffline = used.scope.split(" ").includes("offline_access");
  return json(
    200,
    await tokensOf(app, {
      userId: used.user_id,
      email: used.email,
      emailVerified: used.email_verified,
      sessionId: used.session_id,
      authTime: used.auth_time,
      amr: used.amr,
      clientId,
      scope: used.scope,
      ...(used.nonce !== null && { nonce: used.nonce }),
      ...(isOffline && { refresh: { family: used.family, generation: 1 } }),
    }),
  );
}

/** 256 random bits with their HMAC: `<random>.<mac>`. A code that this app did not issue is refused without a query. */
const codePattern = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;
const codePurpose = "authorization code";

export function newAuthorizationCode(keys: DerivedKeys): string {
  const random = randomBytes(32).toString("base64url");
  return `${random}.${keys.mac(codePurpose, random)}`;
}

/** True if the code has a valid HMAC of this app. */
export function isIssuedCode(code: string, keys: DerivedKeys): boolean {
  const [, random = "", mac = ""] = codePattern.exec(code) ?? [];
  return random !== "" && keys.isMac(codePurpose, random, mac);
}
