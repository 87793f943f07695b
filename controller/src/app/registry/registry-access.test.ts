import type { PresentedCredentials, Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { describe, expect, test } from "vitest";
import { createRegistryAccess, machineCredential } from "./registry-access.ts";

const appId = "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90";
const sealer = { keyedHash: (purpose: string, value: string) => `hash of ${value} for ${purpose}` };
const key: Principal = {
  kind: "api_key",
  id: "hfk_1",
  name: "hfk_1",
  organizationId: "o-1",
  scopes: new Set(["apps:*"]),
};

/** The decision about a header, for the principal that the authenticator finds. */
function decide(authorization: string, principal: Principal | "unknown" = key) {
  const presented: PresentedCredentials[] = [];
  const access = createRegistryAccess({
    authenticator: {
      async authenticate(credentials) {
        presented.push(credentials);
        if (principal === "unknown") throw new HoldfastError("UNAUTHENTICATED", "The credential is unknown.");
        return principal;
      },
    },
    sealer,
    organizationOfApp: (id) => (id === appId ? "o-1" : undefined),
  });
  return access(authorization, "192.0.2.1").then((decision) => ({ decision, presented }));
}

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

describe("access to the registry", () => {
  test("a credential with apps:write pushes and pulls in its organization", async () => {
    const { decision, presented } = await decide(basic("hfk_1", "secret"));
    expect(decision).toEqual({ subject: "api_key:hfk_1", namespace: "o-1", actions: ["pull", "push", "delete"] });
    expect(presented).toEqual([
      { authorization: basic("hfk_1", "secret"), organization: undefined, source: "192.0.2.1" },
    ]);
  });

  test("the password of the user name token is a token", async () => {
    const { presented } = await decide(basic("token", "hft_1"));
    expect(presented[0]?.authorization).toBe("Bearer hft_1");
  });

  test.each([
    ["no such credential", "unknown", "The credential is unknown."],
    ["only apps:read", { ...key, scopes: new Set(["apps:read"]) }, "the credential lacks the scope apps:write"],
    ["a token limited to objects", { ...key, resources: [] }, "the credential lacks the scope apps:write"],
    ["no organization", { ...key, organizationId: undefined }, /not a member of exactly one organization/],
  ] as const)("%s is refused", async (_, principal, refusal) => {
    const { decision } = await decide(basic("hfk_1", "secret"), principal);
    expect(decision).toEqual({ refusal: expect.stringMatching(refusal) });
  });

  test("a machine only pulls, by the credential of the app that it runs", async () => {
    const { username, password } = machineCredential(appId, sealer);
    const { decision, presented } = await decide(basic(username, password));
    expect(decision).toEqual({ subject: `app:${appId}`, namespace: "o-1", actions: ["pull"] });
    expect(presented).toEqual([]);
    const other = "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d91";
    for (const [user, secret] of [
      [username, "x"],
      [username, ""],
      [`app.${other}`, password],
      [`app.${other}`, machineCredential(other, sealer).password],
    ] as const)
      expect((await decide(basic(user, secret))).decision).toEqual({ refusal: "the app does not exist" });
  });
});
