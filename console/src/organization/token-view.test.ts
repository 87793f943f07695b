import { expect, test } from "vitest";
import { accessOf, deletionScope, newTokenOf, possibleScopes, tokenFault } from "./token-view.ts";

const input = { scopes: ["services:read", "apps:read"], lifetime: "3600", limit: "", services: [] } as const;

test("a token has all chosen scopes, and without a limit no resources", () =>
  expect(newTokenOf(input)).toEqual({ scopes: ["services:read", "apps:read"], ttl_seconds: 3_600 }));

test("a token of some services names each, and has no scope of other objects", () => {
  expect(newTokenOf({ ...input, limit: "services", services: ["s", "t"] })).toEqual({
    scopes: ["services:read"],
    ttl_seconds: 3_600,
    resources: [
      { kind: "managed-service", id: "s" },
      { kind: "managed-service", id: "t" },
    ],
  });
});

test("a limited token without a service is not sent: it would access everything", () => {
  expect(tokenFault({ ...input, limit: "services" })).toBe("Select the services that the token may access.");
  expect(tokenFault({ ...input, limit: "services", services: ["s"] })).toBeUndefined();
  expect(tokenFault(input)).toBeUndefined();
});

test.each([
  ["", ["services:*", "apps:*", "platform:read"], ["services:*", "apps:*"]],
  [
    "services",
    ["services:*", "apps:*"],
    ["services:*", "services:read", "services:write", "services:data", "services:secrets"],
  ],
  ["services", ["services:read", "services:data", "apps:read"], ["services:read", "services:data"]],
  ["services", ["apps:*"], []],
] as const)("a token with the limit %j of a user with %j can have %j", (limit, scopes, possible) =>
  expect(possibleScopes(limit, scopes)).toEqual(possible),
);

const services = ["orders", "cache", "bills", "mails", "logs"].map((name) => ({ id: name.slice(0, 1), name }));
const limitedTo = (...ids: readonly string[]) => ({
  is_limited: true,
  resources: ids.map((id) => ({ kind: "managed-service", id }) as const),
});

test("a token without a limit accesses everything", () =>
  expect(accessOf({ is_limited: false, resources: [] }, services)).toEqual({ kind: "everything" }));

test.each([
  [[], [], "orders, cache, bills, 2 more services, everything else of the organization"],
  [["o"], ["orders"], "cache, bills, mails, 1 more service, everything else of the organization"],
  [["o", "c"], ["orders", "cache"], "bills, mails, logs, everything else of the organization"],
  [["gone", "c"], [undefined, "cache"], "orders, bills, mails, 1 more service, everything else of the organization"],
])("a token of %j sees %j, and lacks %s", (ids, names, lacks) => {
  const sees = ids.map((id, index) => ({ id, name: names[index] }));
  expect(accessOf(limitedTo(...ids), services)).toEqual({ kind: "limited", sees, lacks });
});

test.each([
  ["user:anna", "keys:read"],
  ["user:vera", "keys:write"],
  ["app:shop", "keys:write"],
  [null, "keys:write"],
])("anna needs for a token of %s the scope %s", (created_by, scope) =>
  expect(deletionScope({ created_by }, "anna")).toBe(scope),
);
