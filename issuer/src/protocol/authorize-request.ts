import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { isRegistered } from "./redirect-uri.ts";

/** An authorization request that may be answered (OpenID Connect Core section 3.1.2.1). */
export interface AuthorizeRequest {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly scope: string;
  readonly state?: string;
  readonly nonce?: string;
  readonly challenge?: string;
  readonly prompt: "none" | "login" | "";
  readonly maxAgeS?: number;
  readonly loginHint?: string;
  readonly idTokenHint?: string;
}

export type ReadRequest =
  | { readonly ok: true; readonly request: AuthorizeRequest }
  /** Nobody is sent anywhere: the client or its address is not known. */
  | { readonly ok: false; readonly shown: string }
  /** Told to the client. */
  | {
      readonly ok: false;
      readonly redirectUri: string;
      readonly state: string | undefined;
      readonly error: string;
      readonly description: string;
    };

/** Most bytes of values that a cookie carries meanwhile, as JSON writes them. */
const lengths = {
  state: 1_024,
  nonce: 512,
  scope: 256,
  login_hint: 254,
  redirect_uri: 512,
  client_id: 64,
  id_token_hint: 4_096,
  prompt: 64,
};
const knownScopes = new Set(["openid", "email", "offline_access"]);
const challengeForm = /^[A-Za-z0-9_-]{43}$/;

const bounded = ["response_type", "response_mode", "code_challenge", "code_challenge_method", "prompt", "max_age"];

/** The parameters of a request that is read, without any others: they fit a URL. */
export function knownParameters(given: URLSearchParams): URLSearchParams {
  const names = new Set([...Object.keys(lengths), ...bounded]);
  return new URLSearchParams([...given].filter(([name]) => names.has(name)));
}

/** Without its quotes. */
function bytesOf(value: string): number {
  return Buffer.byteLength(JSON.stringify(value)) - 2;
}

/** Pure: reads a request. What is not known is left out of its scope; what contradicts itself is refused. */
export function readAuthorize(given: URLSearchParams, find: (clientId: string) => Client | undefined): ReadRequest {
  const values = new Map<string, string>();
  const doubled: string[] = [];
  for (const [name, value] of given) {
    if (values.has(name)) doubled.push(name);
    else if (value !== "") values.set(name, value);
  }
  const client = find(values.get("client_id") ?? "");
  if (client === undefined || doubled.includes("client_id"))
    return { ok: false, shown: "The app that sent you here is not known." };
  const redirectUri = values.get("redirect_uri") ?? "";
  if (doubled.includes("redirect_uri") || !isRegistered(client, redirectUri))
    return { ok: false, shown: "The app that sent you here gave an address that it did not register." };

  const long = Object.entries(lengths).find(([name, most]) => bytesOf(values.get(name) ?? "") > most)?.[0];
  const state = long === "state" || doubled.includes("state") ? undefined : values.get("state");
  const refused = (error: string, description: string): ReadRequest => ({
    ok: false,
    redirectUri,
    state,
    error,
    description,
  });
  if (doubled.length > 0) return refused("invalid_request", `${doubled[0]} is given twice`);
  if (long !== undefined) return refused("invalid_request", `${long} is too long`);
  if (values.has("request")) return refused("request_not_supported", "request objects are not supported");
  if (values.has("request_uri")) return refused("request_uri_not_supported", "request objects are not supported");
  if (values.has("registration")) return refused("registration_not_supported", "registration is not supported");
  const type = values.get("response_type");
  if (type === undefined) return refused("invalid_request", "response_type is missing");
  if (type !== "code") return refused("unsupported_response_type", "only code is supported");
  const mode = values.get("response_mode");
  if (mode !== undefined && mode !== "query")
    return refused("invalid_request", "only the response_mode query is supported");
  const scopes = [...new Set((values.get("scope") ?? "").split(" "))].filter((scope) => knownScopes.has(scope));
  if (!scopes.includes("openid")) return refused("invalid_scope", "the scope must have openid");

  const challenge = values.get("code_challenge");
  const method = values.get("code_challenge_method");
  if (challenge === undefined && method !== undefined) return refused("invalid_request", "code_challenge is missing");
  if (challenge !== undefined && method !== "S256")
    return refused("invalid_request", "only the code_challenge_method S256 is supported");
  if (challenge !== undefined && !challengeForm.test(challenge))
    return refused("invalid_request", "code_challenge is no SHA-256 in base64url");
  if (challenge === undefined && client.requirePkce) return refused("invalid_request", "code_challenge is missing");
  const nonce = values.get("nonce");
  if (challenge === undefined && nonce === undefined) return refused("invalid_request", "nonce is missing");

  const prompts = (values.get("prompt") ?? "").split(" ").filter((prompt) => prompt !== "");
  if (prompts.includes("none") && prompts.length > 1)
    return refused("invalid_request", "prompt none goes with no other");
  const age = values.get("max_age");
  if (age !== undefined && !/^\d{1,9}$/.test(age)) return refused("invalid_request", "max_age is no number of seconds");
  const loginHint = values.get("login_hint");
  const idTokenHint = values.get("id_token_hint");
  const asksAgain = prompts.some((prompt) => prompt === "login" || prompt === "select_account");
  return {
    ok: true,
    request: {
      clientId: client.clientId,
      redirectUri,
      scope: scopes.join(" "),
      prompt: prompts.includes("none") ? "none" : asksAgain ? "login" : "",
      ...(state !== undefined && { state }),
      ...(nonce !== undefined && { nonce }),
      ...(challenge !== undefined && { challenge }),
      ...(age !== undefined && { maxAgeS: Number(age) }),
      ...(loginHint !== undefined && { loginHint }),
      ...(idTokenHint !== undefined && { idTokenHint }),
    },
  };
}
