import { type App, clientOf } from "../app.ts";
import { type Answer, type Asked, Refused } from "../http/exchange.ts";
import { authenticatedClient, tokenError } from "./client-authentication.ts";
import { exchangeCode } from "./exchange-code.ts";
import { refresh } from "./refresh.ts";

/** POST /token (RFC 6749 section 3.2). */
export function token(app: App, asked: Asked): Promise<Answer> {
  return granted(app, asked).catch((error: unknown) => {
    if (error instanceof Refused) return error.answer;
    throw error;
  });
}

async function granted(app: App, asked: Asked): Promise<Answer> {
  const names = [...asked.form.keys()];
  if (new Set(names).size < names.length)
    throw new Refused(tokenError("invalid_request", "a parameter is given twice"));
  const client = authenticatedClient(asked, (id) => clientOf(app, id));
  // What is sent without a value is not sent (RFC 6749 section 3.2).
  switch (asked.form.get("grant_type") ?? "") {
    case "authorization_code":
      return exchangeCode(app, asked, client);
    case "refresh_token":
      return refresh(app, asked, client);
    case "":
      return tokenError("invalid_request", "grant_type is missing");
    default:
      return tokenError("unsupported_grant_type", "only authorization_code and refresh_token are supported");
  }
}
