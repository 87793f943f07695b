import { createHash, timingSafeEqual } from "node:crypto";
import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { type OutgoingResponse, type IncomingRequest, json, Refused } from "../http/messages.ts";

/** Authenticates the client of a request (RFC 6749 section 2.3). Throws Refused `invalid_client`. */
export function authenticatedClient(
  { authorization, form }: Pick<IncomingRequest, "authorization" | "form">,
  find: (clientId: string) => Client | undefined,
): Client {
  const basic = basicOf(authorization);
  if (authorization !== undefined && basic === undefined) throw new Refused(invalidClient(true));
  const posted = form.get("client_secret") ?? undefined;
  // Two authentication methods, or two client ids, are refused.
  if (basic !== undefined && (posted !== undefined || (form.get("client_id") ?? basic.id) !== basic.id))
    throw new Refused(tokenError("invalid_request", "the client uses two authentication methods"));
  const client = find(basic?.id ?? form.get("client_id") ?? "");
  const secret = basic?.secret ?? posted;
  if (client === undefined) throw new Refused(invalidClient(basic !== undefined));
  if (!client.confidential) {
    if (secret !== undefined && secret !== "") throw new Refused(invalidClient(basic !== undefined));
    return client;
  }
  if (secret === undefined || !isSecret(secret, client.secretHash))
    throw new Refused(invalidClient(basic !== undefined));
  return client;
}

export function tokenError(error: string, description: string, status = 400): OutgoingResponse {
  return json(status, { error, error_description: description });
}

function invalidClient(challenged: boolean): OutgoingResponse {
  const response = tokenError("invalid_client", "the client is unknown, or its secret is wrong", 401);
  if (!challenged) return response;
  return { ...response, headers: { ...response.headers, "www-authenticate": 'Basic realm="token"' } };
}

function basicOf(authorization: string | undefined): { id: string; secret: string } | undefined {
  const encoded = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(authorization ?? "")?.[1];
  const text = encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
  const at = text?.indexOf(":") ?? -1;
  if (text === undefined || at < 0) return undefined;
  const decoded = [text.slice(0, at), text.slice(at + 1)].map(formDecoded);
  const [id, secret] = decoded;
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** Decodes the id or the secret: each is form-encoded before they are joined (RFC 6749 section 2.3.1). */
function formDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

function isSecret(secret: string, hash: string): boolean {
  const presented = createHash("sha256").update(secret).digest();
  const expected = Buffer.from(hash, "hex");
  return presented.length === expected.length && timingSafeEqual(presented, expected);
}
