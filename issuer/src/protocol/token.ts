import type { App } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, Refused } from "../http/messages.ts";
import { tokenError } from "./client-authentication.ts";
import { exchangeCode } from "./exchange-code.ts";
import type { TokenCredentials } from "./token-credentials.ts";
import { refresh } from "./refresh.ts";

/** POST /token (RFC 6749 section 3.2). */
export async function grantTokens(
  app: App,
  incoming: IncomingRequest,
  { client }: Pick<TokenCredentials, "client">,
): Promise<OutgoingResponse> {
  if (!("clientId" in client)) return client;
  try {
    // Empty parameters count as absent (RFC 6749 section 3.2).
    switch (incoming.form.get("grant_type") ?? "") {
      case "authorization_code":
        return await exchangeCode(app, incoming, client);
      case "refresh_token":
        return await refresh(app, incoming, client);
      case "":
        return tokenError("invalid_request", "grant_type is missing");
      default:
        return tokenError("unsupported_grant_type", "only authorization_code and refresh_token are supported");
    }
  } catch (error) {
    if (error instanceof Refused) return error.response;
    throw error;
  }
}
