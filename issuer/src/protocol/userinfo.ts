import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import type { App } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, json } from "../http/messages.ts";
import { claimsOf } from "./tokens.ts";

/** GET or POST /userinfo (OpenID Connect Core section 5.3). The tokens of a revoked session are refused. */
export async function userinfo(
  { tokens, database, config }: App,
  { authorization, form }: IncomingRequest,
): Promise<OutgoingResponse> {
  const bearer = /^Bearer ([A-Za-z0-9._-]+)$/i.exec(authorization ?? "")?.[1] ?? form.get("access_token") ?? undefined;
  if (bearer === undefined) return refused("");
  const claims = await tokens.verify(bearer, "at+jwt");
  if (claims === undefined || claims.aud !== config.appId) return refused(', error="invalid_token"');
  const [user] = await database.tokens.rows<{ email: string; email_verified: boolean }>(
    `SELECT email, email_verified FROM ${s}.users JOIN ${s}.sessions AS session ON session.user_id = users.id
     WHERE users.id = $1 AND session.id = $2 AND session.revoked_at IS NULL`,
    [claims.sub, claims["sid"]],
  );
  if (user === undefined) return refused(', error="invalid_token"');
  const scope = typeof claims["scope"] === "string" ? claims["scope"] : "";
  return json(200, { sub: claims.sub, ...claimsOf({ scope, email: user.email, emailVerified: user.email_verified }) });
}

function refused(more: string): OutgoingResponse {
  return json(401, more === "" ? {} : { error: "invalid_token" }, {
    "www-authenticate": `Bearer realm="userinfo"${more}`,
  });
}
