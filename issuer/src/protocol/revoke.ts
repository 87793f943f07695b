import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { type App, clientOf } from "../app.ts";
import { type Answer, type Asked, json } from "../http/exchange.ts";
import { authenticatedClient } from "./client-authentication.ts";
import { readRefreshToken } from "./refresh-token.ts";

/** POST /revoke (RFC 7009). Access tokens end by themselves within 10 minutes; what is no token of ours is ended already. */
export async function revoke(app: App, asked: Asked): Promise<Answer> {
  const client = authenticatedClient(asked, (id) => clientOf(app, id));
  const token = readRefreshToken(asked.form.get("token") ?? "", app.keys);
  if (token !== undefined)
    await app.database.tokens.rows(
      `UPDATE ${s}.refresh_tokens SET ended_at = coalesce(ended_at, now()) WHERE family = $1 AND client_id = $2`,
      [token.family, client.clientId],
    );
  return json(200, {});
}
