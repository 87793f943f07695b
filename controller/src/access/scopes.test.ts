import { expect, test } from "vitest";
import { isScope, roleScopes } from "../systems.ts";
import { covers, intersection, roles } from "./scopes.ts";

test.each([
  ["services:read", true],
  ["services:*", true],
  ["organization:delete", true],
  ["services:fly", false],
  ["platform:read", false],
  ["platform:*", false],
  ["*:read", false],
  ["constructor:read", false],
  ["services", false],
])("%s is a scope of organizations: %s", (scope, is) => expect(isScope(scope)).toBe(is));

test("each role has every scope of the role below", () => {
  for (const [index, role] of roles.entries()) {
    const below = roles[index - 1];
    if (below === undefined) continue;
    expect([...roleScopes[below]].every((scope) => covers(roleScopes[role], scope))).toBe(true);
    expect([...roleScopes[role]].every((scope) => covers(roleScopes[below], scope))).toBe(false);
  }
});

test.each([
  [["services:*"], ["services:read", "org:read"], ["services:read"]],
  [["services:read"], ["services:*"], ["services:read"]],
  [["services:*", "org:write"], ["services:*", "org:read"], ["services:*"]],
  [["keys:*"], [], []],
])("%j of whom has %j is %j", (scopes, granted, both) =>
  expect([...intersection(scopes, new Set(granted))]).toEqual(both),
);
