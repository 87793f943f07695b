import { createHash, randomUUID } from "node:crypto";
import { type App } from "../app.ts";
import type { DerivedKeys } from "../derived-keys.ts";

/** Subject, client and scope of tokens. */
export interface Grant {
  readonly userId: string;
  readonly email: string;
  readonly emailVerified: boolean;
  readonly sessionId: string;
  readonly authTime: Date;
  readonly amr: readonly string[];
  readonly clientId: string;
  readonly scope: string;
  readonly nonce?: string;
  /** Refresh token to issue; undefined without offline_access. */
  readonly refresh?: { readonly family: string; readonly generation: number };
}

const accessTokenS = 600;

/** Response of the token endpoint: an access token (RFC 9068), an ID token, and a refresh token if requested. */
export async function tokensOf(app: App, grant: Grant): Promise<object> {
  const { config, tokens, keys, now } = app;
  const { userId: sub, sessionId: sid, clientId, scope, refresh } = grant;
  const iat = Math.floor(now() / 1_000);
  const authTime = Math.floor(grant.authTime.getTime() / 1_000);
  const common = { iss: config.issuerUrl, sub, iat, exp: iat + accessTokenS, sid, auth_time: authTime };
  const amr = [...grant.amr];
  const accessToken = await tokens.sign(
    { ...common, aud: config.appId, client_id: clientId, scope, jti: randomUUID(), amr },
    "at+jwt",
  );
  const idToken = await tokens.sign(
    {
      ...common,
      aud: clientId,
      amr,
      at_hash: createHash("sha256").update(accessToken).digest().subarray(0, 16).toString("base64url"),
      ...(grant.nonce !== undefined && { nonce: grant.nonce }),
      ...claimsOf(grant),
    },
    "JWT",
  );
  return {
    access_token: accessToken,
    token_type: "Bearer",
    expires_in: accessTokenS,
    id_token: idToken,
    scope,
    ...(refresh !== undefined && { refresh_token: refreshTokenText(refresh, keys) }),
  };
}

/** Claims that the scope grants. */
export function claimsOf({ scope, email, emailVerified }: Pick<Grant, "scope" | "email" | "emailVerified">): object {
  return scope.split(" ").includes("email") ? { email, email_verified: emailVerified } : {};
}

/** A refresh token: `<family>.<generation>.<HMAC>`. The token is not stored, so the database does not reveal it. */
interface RefreshToken {
  readonly family: string;
  readonly generation: number;
}

const refreshTokenPattern = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d{1,9})\.([A-Za-z0-9_-]{43})$/;
const refreshTokenPurpose = "refresh token";

export function refreshTokenText({ family, generation }: RefreshToken, keys: DerivedKeys): string {
  const text = `${family}.${generation}`;
  return `${text}.${keys.mac(refreshTokenPurpose, text)}`;
}

/** Parses a refresh token; undefined if this app did not issue it. */
export function readRefreshToken(text: string, keys: DerivedKeys): RefreshToken | undefined {
  const [, family = "", generation = "", mac = ""] = refreshTokenPattern.exec(text) ?? [];
  if (family === "" || !keys.isMac(refreshTokenPurpose, `${family}.${generation}`, mac)) return undefined;
  return { family, generation: Number(generation) };
}
