import type { Client } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";

/** A valid authorization request (OpenID Connect Core section 3.1.2.1). */
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

export type ReadAuthorizeRequest =
  | { readonly ok: true; readonly request: AuthorizeRequest }
  /** No redirect, since the client or its redirect URI is unknown: a page shows the message. */
  | { readonly ok: false; readonly userMessage: string }
  /** An error for the client, by redirect. */
  | {
      readonly ok: false;
      readonly redirectUri: string;
      readonly state: string | undefined;
      readonly error: string;
      readonly description: string;
    };

/** Maximum bytes of a state. The parameter is opaque, and some clients store a complete target in it. */
const maxStateBytes = 4_096;
/** Maximum bytes of a state that an error returns: the largest one that a URL can have here. */
const maxReturnedStateBytes = 16_384;
/** Maximum bytes of the other values, as JSON, which the interaction's cookie stores. */
const maxBytes = {
  nonce: 512,
  scope: 256,
  login_hint: 254,
  redirect_uri: 512,
  client_id: 64,
  id_token_hint: 4_096,
  prompt: 64,
};
const supportedScopes = new Set(["openid", "email", "offline_access"]);
const challengePattern = /^[A-Za-z0-9_-]{43}$/;

const boundedParameters = [
  "state",
  "response_type",
  "response_mode",
  "code_challenge",
  "code_challenge_method",
  "prompt",
  "max_age",
];

/** The supported parameters of a request, which fit into a URL. */
export function supportedParameters(parameters: URLSearchParams): URLSearchParams {
  const names = new Set([...Object.keys(maxBytes), ...boundedParameters]);
  return new URLSearchParams([...parameters].filter(([name]) => names.has(name)));
}

/** Size as JSON, without the quotes. */
function bytesOf(value: string): number {
  return Buffer.byteLength(JSON.stringify(value)) - 2;
}

/** True if a repeated parameter has several values. */
function isAmbiguous(parameters: URLSearchParams, name: string): boolean {
  return new Set(parameters.getAll(name)).size > 1;
}

/** Parses a request. Unknown scopes are dropped; contradictions are refused. */
export function readAuthorize(
  parameters: URLSearchParams,
  find: (clientId: string) => Client | undefined,
): ReadAuthorizeRequest {
  const values = new Map<string, string>();
  const repeated: string[] = [];
  for (const [name, value] of parameters) {
    if (values.has(name)) repeated.push(name);
    else if (value !== "") values.set(name, value);
  }
  const client = find(values.get("client_id") ?? "");
  if (client === undefined || repeated.includes("client_id"))
    return { ok: false, userMessage: "The app that sent you here is unknown." };
  const redirectUri = values.get("redirect_uri") ?? "";
  if (repeated.includes("redirect_uri") || !isRegistered(client, redirectUri))
    return { ok: false, userMessage: "The app that sent you here gave an address that it did not register." };

  const stateBytes = Buffer.byteLength(values.get("state") ?? "");
  if (stateBytes > maxReturnedStateBytes)
    return { ok: false, userMessage: "The app that sent you here gave a state that is too long." };
  const tooLong =
    stateBytes > maxStateBytes
      ? "state"
      : Object.entries(maxBytes).find(([name, max]) => bytesOf(values.get(name) ?? "") > max)?.[0];
  const state = isAmbiguous(parameters, "state") ? undefined : values.get("state");
  const refused = (error: string, description: string): ReadAuthorizeRequest => ({
    ok: false,
    redirectUri,
    state,
    error,
    description,
  });
  if (repeated.length > 0) return refused("invalid_request", `${repeated[0]} is repeated`);
  if (tooLong !== undefined) return refused("invalid_request", `${tooLong} is too long`);
  if (values.has("request")) return refused("request_not_supported", "request objects are not supported");
  if (values.has("request_uri")) return refused("request_uri_not_supported", "request objects are not supported");
  if (values.has("registration")) return refused("registration_not_supported", "registration is not supported");
  const type = values.get("response_type");
  if (type === undefined) return refused("invalid_request", "response_type is missing");
  if (type !== "code") return refused("unsupported_response_type", "only code is supported");
  const mode = values.get("response_mode");
  if (mode !== undefined && mode !== "query")
    return refused("invalid_request", "only the response_mode query is supported");
  const scopes = [...new Set((values.get("scope") ?? "").split(" "))].filter((scope) => supportedScopes.has(scope));
  if (!scopes.includes("openid")) return refused("invalid_scope", "the scope must contain openid");

  const challenge = values.get("code_challenge");
  const method = values.get("code_challenge_method");
  if (challenge === undefined && method !== undefined) return refused("invalid_request", "code_challenge is missing");
  if (challenge !== undefined && method !== "S256")
    return refused("invalid_request", "only the code_challenge_method S256 is supported");
  if (challenge !== undefined && !challengePattern.test(challenge))
    return refused("invalid_request", "code_challenge is not a SHA-256 in base64url");
  if (challenge === undefined && client.requirePkce) return refused("invalid_request", "code_challenge is missing");
  const nonce = values.get("nonce");
  if (challenge === undefined && nonce === undefined) return refused("invalid_request", "nonce is missing");

  const prompts = (values.get("prompt") ?? "").split(" ").filter((prompt) => prompt !== "");
  if (prompts.includes("none") && prompts.length > 1)
    return refused("invalid_request", "prompt none excludes other values");
  const age = values.get("max_age");
  if (age !== undefined && !/^\d{1,9}$/.test(age))
    return refused("invalid_request", "max_age is not a number of seconds");
  const loginHint = values.get("login_hint");
  const idTokenHint = values.get("id_token_hint");
  const requiresSignIn = prompts.some((prompt) => prompt === "login" || prompt === "select_account");
  return {
    ok: true,
    request: {
      clientId: client.clientId,
      redirectUri,
      scope: scopes.join(" "),
      prompt: prompts.includes("none") ? "none" : requiresSignIn ? "login" : "",
      ...(state !== undefined && { state }),
      ...(nonce !== undefined && { nonce }),
      ...(challenge !== undefined && { challenge }),
      ...(age !== undefined && { maxAgeS: Number(age) }),
      ...(loginHint !== undefined && { loginHint }),
      ...(idTokenHint !== undefined && { idTokenHint }),
    },
  };
}

const loopback = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** True for exactly a registered URI of the client. On loopback any port matches (RFC 8252 section 7.3). */
export function isRegistered({ redirectUris }: Pick<Client, "redirectUris">, uri: string): boolean {
  if (redirectUris.includes(uri)) return true;
  const portless = withoutPort(uri);
  return portless !== undefined && redirectUris.some((registered) => withoutPort(registered) === portless);
}

/** The URI without its port; undefined unless it is normalized plain HTTP on loopback. */
function withoutPort(uri: string): string | undefined {
  const url = URL.parse(uri);
  if (url === null || url.protocol !== "http:" || !loopback.has(url.hostname)) return undefined;
  if (url.username !== "" || url.password !== "" || url.hash !== "" || url.href !== uri) return undefined;
  return `${url.hostname}${url.pathname}${url.search}`;
}
