import { expect, test } from "vitest";
import { accessText, deletionScope, newTokenOf } from "./token-view.ts";

test("a token is limited to a service only if one was chosen", () => {
  const input = { scopes: ["services:read"], lifetime: "3600", service: "" };
  expect(newTokenOf(input)).toEqual({ scopes: ["services:read"], ttl_seconds: 3_600 });
  expect(newTokenOf({ ...input, service: "s" }).resources).toEqual([{ kind: "managed-service", id: "s" }]);
});

const resource = { kind: "managed-service", id: "s" } as const;
test.each([
  [false, [], "everything"],
  [true, [], "nothing"],
  [true, [resource], "1 service"],
  [true, [resource, resource], "2 services"],
])("a token that is limited (%s) to %j accesses %s", (is_limited, resources, text) =>
  expect(accessText({ is_limited, resources })).toBe(text),
);

test.each([
  ["user:anna", "keys:read"],
  ["user:vera", "keys:write"],
  ["app:shop", "keys:write"],
  [null, "keys:write"],
])("anna needs for a token of %s the scope %s", (created_by, scope) =>
  expect(deletionScope({ created_by }, "anna")).toBe(scope),
);
