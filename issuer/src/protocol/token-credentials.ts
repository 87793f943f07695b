import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { type App, clientOf } from "../app.ts";
import { type OutgoingResponse, type IncomingRequest, Refused } from "../http/messages.ts";
import { isIssuedCode } from "./exchange-code.ts";
import { authenticatedClient, tokenError } from "./client-authentication.ts";
import { readRefreshToken } from "./tokens.ts";

/** Client and credentials of a token request, as far as they can be checked without the database. */
export interface TokenCredentials {
  /** The client id of the request, truncated to the maximum length. */
  readonly clientId: string;
  /** The client, or the response if the client is unknown or its secret is wrong. */
  readonly client: Client | OutgoingResponse;
  /** True if the request proved a client secret. */
  readonly isAuthenticated: boolean;
  /** The code, or the refresh token family, if this app issued it; undefined otherwise. */
  readonly issuedGrant: string | undefined;
}

const maxClientIdLength = 64;

export function readTokenCredentials(app: App, incoming: IncomingRequest): TokenCredentials {
  const { form } = incoming;
  const clientId = (form.get("client_id") ?? "").slice(0, maxClientIdLength);
  const client = clientIn(app, incoming);
  if (!("clientId" in client)) return { clientId, client, isAuthenticated: false, issuedGrant: undefined };
  const token = readRefreshToken(form.get("refresh_token") ?? "", app.keys);
  const code = form.get("code") ?? "";
  const issuedGrant = token?.family ?? (isIssuedCode(code, app.keys) ? code : undefined);
  return { clientId: client.clientId, client, isAuthenticated: client.confidential, issuedGrant };
}

function clientIn(app: App, incoming: IncomingRequest): Client | OutgoingResponse {
  const names = [...incoming.form.keys()];
  if (new Set(names).size < names.length) return tokenError("invalid_request", "a parameter is repeated");
  try {
    return authenticatedClient(incoming, (id) => clientOf(app, id));
  } catch (error) {
    if (error instanceof Refused) return error.response;
    throw error;
  }
}
