import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { basic } from "@holdfast/testing/api/rest.ts";
import { clientId, confidentialId, type Oracle, redirectUri, secret, startOracle } from "./sign-in/oracle.ts";

/** An intended difference from oidc-provider. */
interface Difference {
  readonly name: string;
  readonly reason: string;
  readonly applies: (request: ReadonlyMap<string, string>) => boolean;
  readonly holdfast: string;
  /** Outcome of oidc-provider; absent when it may differ. */
  readonly reference?: string;
}

const signInPrompt = "sign-in page";
const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbvaTyXoqqqU";
const partsOf = (request: ReadonlyMap<string, string>, name: string) => (request.get(name) ?? "").split(" ");

const atAuthorize: readonly Difference[] = [
  {
    name: "a scope without openid is an invalid scope",
    reason:
      "The error for a scope that is not valid is invalid_scope (RFC 6749 4.1.2.1); oidc-provider returns invalid_request.",
    applies: (request) => !partsOf(request, "scope").includes("openid"),
    holdfast: "invalid_scope",
  },
  {
    name: "query is the only response mode",
    reason: "The code flow needs no code in a fragment or a form, and each mode is another way to leak it.",
    applies: (request) => (request.get("response_mode") ?? "query") !== "query",
    holdfast: "invalid_request",
  },
  {
    name: "redirect_uri is required",
    reason: "redirect_uri is required (Core 3.1.2.1); oidc-provider uses the only registered one.",
    applies: (request) => request.get("redirect_uri") === "",
    holdfast: "a page",
  },
  {
    name: "unsupported prompts are ignored",
    reason:
      "A server ignores a prompt that it does not support (Core 3.1.2.1): no consent is requested, and another account signs in.",
    applies: (request) => partsOf(request, "prompt").some((word) => ["select_account", "create"].includes(word)),
    holdfast: signInPrompt,
    reference: "invalid_request",
  },
  {
    name: "values are bounded",
    reason:
      "The browser's cookie stores the request while the user signs in, and a cookie has no space for more than 4 KiB.",
    applies: (request) => (request.get("state") ?? "").length > 4_096,
    holdfast: "invalid_request",
    reference: signInPrompt,
  },
];

/** Check of each member of a request: true if its value is a fault. */
const faults: Readonly<Record<string, (text: string) => boolean>> = {
  response_type: (text) => text !== "code",
  scope: (text) => !text.split(" ").includes("openid"),
  code_challenge: (text) => text !== challenge,
  code_challenge_method: (text) => text !== "S256",
  state: (text) => text.length > 4_096,
  prompt: (text) => text === "none login",
  max_age: (text) => !/^\d+$/.test(text),
  response_mode: (text) => text !== "query",
  request: () => true,
  registration: () => true,
  id_token_hint: () => true,
};
const faultsOf = (request: ReadonlyMap<string, string>) =>
  [...request].filter(([name, text]) => faults[name]?.(text) === true).length;

const value = <T>(...values: T[]) => fc.constantFrom(...values);
const authorizeRequest = fc.record(
  {
    client_id: fc.oneof(
      { weight: 9, arbitrary: value(clientId, confidentialId) },
      { weight: 1, arbitrary: value("x", "") },
    ),
    redirect_uri: fc.oneof(
      { weight: 12, arbitrary: value(redirectUri) },
      { weight: 1, arbitrary: value(`${redirectUri}/`, "https://evil.example", "javascript:alert(1)", "") },
    ),
    response_type: fc.oneof(
      { weight: 9, arbitrary: value("code") },
      { weight: 1, arbitrary: value("token", "id_token", "") },
    ),
    scope: fc.oneof(
      { weight: 6, arbitrary: value("openid", "openid email offline_access", "openid x") },
      value("email"),
    ),
    code_challenge: fc.oneof({ weight: 9, arbitrary: value(challenge) }, { weight: 1, arbitrary: value("short", "") }),
    code_challenge_method: fc.oneof(
      { weight: 9, arbitrary: value("S256") },
      { weight: 1, arbitrary: value("plain", "S512") },
    ),
    state: fc.oneof(
      { weight: 9, arbitrary: value("state", "ünï", "") },
      { weight: 1, arbitrary: value("s".repeat(4_096), "s".repeat(4_097)) },
    ),
    nonce: value("nonce"),
    prompt: value("", "none", "login", "consent", "none login", "select_account", "login consent", "login login"),
    max_age: value("0", "600", "-1", "soon"),
    response_mode: value("query", "fragment", "form_post", "x"),
    request: value("e30.e30."),
    registration: value("{}"),
    id_token_hint: value("none"),
    display: value("page", "popup"),
    ui_locales: value("en de"),
    acr_values: value("x"),
  },
  {
    requiredKeys: [
      "client_id",
      "redirect_uri",
      "response_type",
      "scope",
      "code_challenge",
      "code_challenge_method",
      "nonce",
    ],
  },
);

let oracle: Oracle;
beforeAll(async () => {
  oracle = await startOracle();
});
afterAll(() => oracle?.close());

const seen = new Set<string>();

function compare(
  request: ReadonlyMap<string, string>,
  { holdfast, reference }: { readonly holdfast: string; readonly reference: string },
  differences: readonly Difference[],
): void {
  if (holdfast === reference) return;
  const listed = differences.find(
    (each) => each.applies(request) && each.holdfast === holdfast && (each.reference ?? reference) === reference,
  );
  if (listed !== undefined) return void seen.add(listed.name);
  // With several faults, the first check determines the error.
  if (faultsOf(request) > 1 && [holdfast, reference].every((outcome) => outcome !== signInPrompt)) return;
  expect.fail(`${JSON.stringify([...request])}: holdfast ${holdfast}, reference ${reference}`);
}

/** Each optional member is present in a third of the requests. */
const sparse = authorizeRequest.map(
  (request) => new Map(Object.entries(request).filter(([, text]) => text !== undefined)),
);

test("authorization requests are accepted and rejected as by oidc-provider, with listed differences", async () => {
  const required = new Set([
    "client_id",
    "redirect_uri",
    "response_type",
    "scope",
    "code_challenge",
    "code_challenge_method",
    "nonce",
  ]);
  await fc.assert(
    fc.asyncProperty(sparse, fc.nat(), async (all, pick) => {
      const optional = [...all.keys()].filter((name) => !required.has(name));
      const picked = optional[pick % Math.max(optional.length, 1)];
      const request = new Map([...all].filter(([name]) => required.has(name) || name === picked));
      compare(request, await oracle.authorize(new URLSearchParams([...request])), atAuthorize);
    }),
    { numRuns: 500, seed: 29 },
  );
  for (const { name } of atAuthorize) expect(seen).toContain(name);
});

const tokenRequest = fc.record({
  grant_type: value("authorization_code", "refresh_token", "password", "client_credentials", "", undefined),
  code: value("nobody-has-this", undefined),
  refresh_token: value("nobody-has-this", undefined),
  redirect_uri: value(redirectUri),
  code_verifier: value("v".repeat(43), "short", undefined),
  client_id: value(clientId, confidentialId, "x", undefined),
  client_secret: value(undefined, secret, "wrong"),
  authorization: value(
    undefined,
    basic(confidentialId, secret),
    basic(confidentialId, "wrong"),
    basic("x", secret),
    "Basic ?",
  ),
});

const atToken: readonly Difference[] = [
  {
    name: "a client without credentials is unknown",
    reason:
      "A request without a client, or with a header that names none, comes from an unknown client (RFC 6749 5.2).",
    applies: (request) => ["", "Basic ?"].includes(request.get("authorization") ?? ""),
    holdfast: "401 invalid_client",
    reference: "400 invalid_request",
  },
  {
    name: "the form of a code_verifier is checked first",
    reason:
      "A malformed code_verifier (RFC 7636 4.1) makes the request malformed with any code; oidc-provider checks the code first.",
    applies: (request) => request.get("code_verifier") === "short",
    holdfast: "400 invalid_request",
    reference: "400 invalid_grant",
  },
];

test("token requests are rejected as by oidc-provider, with listed differences", async () => {
  await fc.assert(
    fc.asyncProperty(tokenRequest, async ({ authorization, ...form }) => {
      const request = new Map(
        Object.entries(form).filter((entry): entry is [string, string] => entry[1] !== undefined),
      );
      const outcome = await oracle.token(new URLSearchParams([...request]), authorization);
      compare(new Map([...request, ["authorization", authorization ?? ""]]), outcome, atToken);
    }),
    { numRuns: 400, seed: 29 },
  );
  for (const { name } of atToken) expect(seen).toContain(name);
});
