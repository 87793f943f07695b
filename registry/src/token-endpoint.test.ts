import { create } from "@bufbuild/protobuf";
import { AccessResponseSchema } from "@holdfast/proto/holdfast/registry/v1/registry_pb.ts";
import { describe, expect, test } from "vitest";
import type { Claims } from "./access-token.ts";
import { Unavailable } from "./controller-feed.ts";
import { tokenAnswer } from "./token-endpoint.ts";

const member = create(AccessResponseSchema, { subject: "api_key:k", namespace: "o-1", actions: ["pull", "push"] });

/** The answer to a request with these scopes, and the claims of its token. */
async function ask(
  scopes: readonly string[],
  accessOf = async () => member,
  authorization: string | undefined = "Basic x",
) {
  const signed: Claims[] = [];
  const query = new URLSearchParams(scopes.map((scope): [string, string] => ["scope", scope]));
  const tokens = {
    sign(claims: Claims) {
      signed.push(claims);
      return "t";
    },
  };
  const answer = await tokenAnswer({ query, authorization, source: "192.0.2.1" }, { tokens, accessOf, now: () => 0 });
  return { answer, access: signed[0]?.access };
}

describe("the token endpoint", () => {
  test.each([
    ["repository:o-1/shop:pull,push", [{ name: "o-1/shop", actions: ["pull", "push"] }]],
    ["repository:o-1/shop/web:push", [{ name: "o-1/shop/web", actions: ["push"] }]],
    ["repository:o-1/a:pull repository:o-1/b:pull", [{ name: "o-1/a" }, { name: "o-1/b" }]],
    ["repository:o-1/shop:*", []],
    ["repository:o-1/shop:delete", []],
    ["repository:o-1:pull", []],
    ["repository:o-10/shop:pull", []],
    ["repository:o-2/shop:pull", []],
    ["repository:o-1/../o-2/shop:pull", []],
    ["repository:o-1/Shop:pull", []],
    ["registry:catalog:*", []],
    ["", []],
  ])("grants for %j what is the caller's", async (scope, expected) => {
    const { answer, access } = await ask([scope]);
    expect(answer).toMatchObject({ status: 200, body: { token: "t", access_token: "t", expires_in: 300 } });
    expect(access).toMatchObject(expected);
    expect(access).toHaveLength(expected.length);
  });

  test("bounds the number of scopes", async () => {
    const { access } = await ask(Array.from({ length: 100 }, (_, at) => `repository:o-1/r${at}:pull`));
    expect(access).toHaveLength(20);
  });

  test("refuses a caller without a valid credential, and says why", async () => {
    const refused = create(AccessResponseSchema, { refusal: "the credential lacks the scope apps:write" });
    const { answer, access } = await ask([], async () => refused);
    expect(answer).toMatchObject({
      status: 401,
      headers: { "www-authenticate": 'Basic realm="holdfast"' },
      body: { errors: [{ code: "UNAUTHORIZED", message: refused.refusal }] },
    });
    expect(access).toBeUndefined();
    expect((await ask([], undefined, "")).answer.status).toBe(401);
    expect((await ask([], undefined, `Basic ${"x".repeat(5_000)}`)).answer.status).toBe(401);
  });

  test("reports that no controller responds", async () => {
    const { answer } = await ask([], () => Promise.reject(new Unavailable()));
    expect(answer).toMatchObject({ status: 503, body: { errors: [{ code: "UNAVAILABLE" }] } });
  });
});
