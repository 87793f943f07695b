import { createHash, randomUUID } from "node:crypto";
import { type App } from "../app.ts";
import { refreshTokenText } from "./refresh-token.ts";

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
