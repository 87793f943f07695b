import type { App } from "../app.ts";
import { type Answer, type Asked, Refused } from "../http/exchange.ts";
import { tokenError } from "./client-authentication.ts";
import { exchangeCode } from "./exchange-code.ts";
import type { Presented } from "./presented.ts";
import { refresh } from "./refresh.ts";

/** POST /token (RFC 6749 section 3.2). */
export async function granted(app: App, asked: Asked, { client }: Pick<Presented, "client">): Promise<Answer> {
  if (!("clientId" in client)) return client;
  try {
    // What is sent without a value is not sent (RFC 6749 section 3.2).
    switch (asked.form.get("grant_type") ?? "") {
      case "authorization_code":
        return await exchangeCode(app, asked, client);
      case "refresh_token":
        return await refresh(app, asked, client);
      case "":
        return tokenError("invalid_request", "grant_type is missing");
      default:
        return tokenError("unsupported_grant_type", "only authorization_code and refresh_token are supported");
    }
  } catch (error) {
    if (error instanceof Refused) return error.answer;
    throw error;
  }
}
