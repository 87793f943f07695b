import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { type App, clientOf } from "../app.ts";
import { type Answer, type Asked, Refused } from "../http/exchange.ts";
import { kindOfCode } from "./authorization-code.ts";
import { authenticatedClient, tokenError } from "./client-authentication.ts";
import { readRefreshToken } from "./refresh-token.ts";

/** The client and the proof of a request to the token endpoint, as far as they are found without the database. */
export interface Presented {
  /** As it was given; cut to what an id may have. */
  readonly clientId: string;
  /** The client, or the refusal where it is not known, or did not prove its secret. */
  readonly client: Client | Answer;
  /** It proved a secret. */
  readonly isAuthenticated: boolean;
  /** The code, or the family of refresh tokens, that this app handed out; undefined for all else. */
  readonly handedOut: string | undefined;
}

const clientIdMax = 64;

export function presentedOf(app: App, asked: Asked): Presented {
  const { form } = asked;
  const clientId = (form.get("client_id") ?? "").slice(0, clientIdMax);
  const client = clientIn(app, asked);
  if (!("clientId" in client)) return { clientId, client, isAuthenticated: false, handedOut: undefined };
  const token = readRefreshToken(form.get("refresh_token") ?? "", app.keys);
  const code = form.get("code") ?? "";
  const handedOut = token?.family ?? (kindOfCode(code, app.keys) === "ours" ? code : undefined);
  return { clientId: client.clientId, client, isAuthenticated: client.confidential, handedOut };
}

function clientIn(app: App, asked: Asked): Client | Answer {
  const names = [...asked.form.keys()];
  if (new Set(names).size < names.length) return tokenError("invalid_request", "a parameter is given twice");
  try {
    return authenticatedClient(asked, (id) => clientOf(app, id));
  } catch (error) {
    if (error instanceof Refused) return error.answer;
    throw error;
  }
}
