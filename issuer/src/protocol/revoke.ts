import { authSchema as s } from "@holdfast/common/auth-schema/names.ts";
import { type App, clientOf } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, json } from "../http/messages.ts";
import { authenticatedClient } from "./client-authentication.ts";
import { readRefreshToken } from "./tokens.ts";

/** POST /revoke (RFC 7009). Access tokens expire within 10 minutes; revoking an invalid token succeeds. */
export async function revoke(app: App, incoming: IncomingRequest): Promise<OutgoingResponse> {
  const client = authenticatedClient(incoming, (id) => clientOf(app, id));
  const token = readRefreshToken(incoming.form.get("token") ?? "", app.keys);
  if (token !== undefined)
    await app.database.tokens.rows(
      `UPDATE ${s}.refresh_tokens SET ended_at = coalesce(ended_at, now()) WHERE family = $1 AND client_id = $2`,
      [token.family, client.clientId],
    );
  return json(200, {});
}
