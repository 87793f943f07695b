import { create } from "@bufbuild/protobuf";
import { ClientSchema } from "@holdfast/proto/holdfast/issuer/v1/issuer_pb.ts";
import { expect, test } from "vitest";
import { readAuthorize } from "./authorize-request.ts";

const clients = [
  create(ClientSchema, { clientId: "shop", redirectUris: ["https://shop.example/cb"], requirePkce: true }),
  create(ClientSchema, {
    clientId: "old",
    confidential: true,
    redirectUris: ["https://old.example/cb"],
    requirePkce: false,
  }),
];
const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const valid = {
  client_id: "shop",
  redirect_uri: "https://shop.example/cb",
  response_type: "code",
  scope: "openid email",
  code_challenge: challenge,
  code_challenge_method: "S256",
  state: "s",
};
const read = (parameters: Record<string, string>) =>
  readAuthorize(new URLSearchParams(parameters), (id) => clients.find(({ clientId }) => clientId === id));

test("a valid request is parsed", () => {
  expect(read({ ...valid, scope: "openid email profile", max_age: "0", prompt: "login" })).toEqual({
    ok: true,
    request: {
      clientId: "shop",
      redirectUri: "https://shop.example/cb",
      scope: "openid email",
      state: "s",
      challenge,
      prompt: "login",
      maxAgeS: 0,
    },
  });
});

test.each([[{ client_id: "other" }], [{ redirect_uri: "https://shop.example/cb?x" }], [{ redirect_uri: "" }]])(
  "%j shows a message without a redirect",
  (change) => expect(read({ ...valid, ...change })).toMatchObject({ ok: false, userMessage: expect.any(String) }),
);

test.each([
  [{ response_type: "token" }, "unsupported_response_type"],
  [{ response_type: "" }, "invalid_request"],
  [{ response_mode: "fragment" }, "invalid_request"],
  [{ scope: "email" }, "invalid_scope"],
  [{ code_challenge: "" }, "invalid_request"],
  [{ code_challenge: "", code_challenge_method: "" }, "invalid_request"],
  [{ code_challenge_method: "plain" }, "invalid_request"],
  [{ code_challenge: "short" }, "invalid_request"],
  [{ prompt: "none login" }, "invalid_request"],
  [{ max_age: "-1" }, "invalid_request"],
  [{ request: "x" }, "request_not_supported"],
  [{ request_uri: "https://x" }, "request_uri_not_supported"],
  [{ nonce: "n".repeat(513) }, "invalid_request"],
])("%j is reported to the client as %s", (change, error) =>
  expect(read({ ...valid, ...change })).toMatchObject({ ok: false, error, state: "s" }),
);

test.each([
  ["s".repeat(4_096), { ok: true }],
  ["ü".repeat(2_048), { ok: true }],
  ['"'.repeat(4_096), { ok: true }],
  ["s".repeat(4_097), { ok: false, error: "invalid_request", description: "state is too long" }],
  ["ü".repeat(2_049), { ok: false, error: "invalid_request" }],
  ["s".repeat(16_384), { ok: false, error: "invalid_request" }],
])("a state of up to 4 KiB is accepted, and a longer one returns with the error (%#)", (state, outcome) => {
  const found = read({ ...valid, state });
  expect(found).toMatchObject(outcome);
  expect("request" in found ? found.request.state : "state" in found ? found.state : "").toBe(state);
});

test("a state that fits into no URL gets a page", () => {
  expect(read({ ...valid, state: "s".repeat(16_385) })).toHaveProperty("userMessage");
});

test("the state returns with the error for a repeated parameter, unless it has two values itself", () => {
  const repeated = (name: string, value: string) => {
    const parameters = new URLSearchParams(valid);
    parameters.append(name, value);
    return readAuthorize(parameters, () => clients[0]);
  };
  expect(repeated("scope", "openid")).toMatchObject({ error: "invalid_request", state: "s" });
  expect(repeated("state", "s")).toMatchObject({ error: "invalid_request", state: "s" });
  expect(repeated("state", "t")).toMatchObject({ error: "invalid_request", state: undefined });
});

test("a repeated parameter is rejected", () => {
  const twice = new URLSearchParams(valid);
  twice.append("scope", "openid");
  expect(readAuthorize(twice, () => clients[0])).toMatchObject({ error: "invalid_request" });
  const clientTwice = new URLSearchParams(valid);
  clientTwice.append("redirect_uri", "https://evil.example");
  expect(readAuthorize(clientTwice, () => clients[0])).toHaveProperty("userMessage");
});

test("a client without PKCE must send a nonce", () => {
  const old = { client_id: "old", redirect_uri: "https://old.example/cb", response_type: "code", scope: "openid" };
  expect(read(old)).toMatchObject({ error: "invalid_request" });
  expect(read({ ...old, nonce: "n" })).toMatchObject({ ok: true });
});
