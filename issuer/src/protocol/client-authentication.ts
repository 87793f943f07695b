import { createHash, timingSafeEqual } from "node:crypto";
import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { type Answer, type Asked, json, Refused } from "../http/exchange.ts";

/** The client of a request to a token endpoint (RFC 6749 section 2.3). Throws Refused `invalid_client`. */
export function authenticatedClient(
  { authorization, form }: Pick<Asked, "authorization" | "form">,
  find: (clientId: string) => Client | undefined,
): Client {
  const basic = basicOf(authorization);
  if (authorization !== undefined && basic === undefined) throw new Refused(notKnown(true));
  const posted = form.get("client_secret") ?? undefined;
  // Two ways at once are refused, and one client only may be meant.
  if (basic !== undefined && (posted !== undefined || (form.get("client_id") ?? basic.id) !== basic.id))
    throw new Refused(tokenError("invalid_request", "the client authenticates in two ways"));
  const client = find(basic?.id ?? form.get("client_id") ?? "");
  const secret = basic?.secret ?? posted;
  if (client === undefined) throw new Refused(notKnown(basic !== undefined));
  if (!client.confidential) {
    if (secret !== undefined && secret !== "") throw new Refused(notKnown(basic !== undefined));
    return client;
  }
  if (secret === undefined || !isSecret(secret, client.secretHash)) throw new Refused(notKnown(basic !== undefined));
  return client;
}

export function tokenError(error: string, description: string, status = 400): Answer {
  return json(status, { error, error_description: description });
}

function notKnown(challenged: boolean): Answer {
  const answer = tokenError("invalid_client", "the client is not known, or its secret is wrong", 401);
  return challenged ? { ...answer, headers: { ...answer.headers, "www-authenticate": 'Basic realm="token"' } } : answer;
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

/** Both parts are form-encoded before they are joined. */
function formDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

function isSecret(secret: string, hash: string): boolean {
  const given = createHash("sha256").update(secret).digest();
  const right = Buffer.from(hash, "hex");
  return given.length === right.length && timingSafeEqual(given, right);
}
