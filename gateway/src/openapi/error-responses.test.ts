import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import type { ApiMethod, RestRule } from "../method.ts";
import { errorResponses } from "./error-responses.ts";

test.each([
  ["a sign-in, whose credential is in its body", "401", "public", false, "POST", "/sessions", true],
  ["a public read", "401", "public", true, "GET", "/projects/schema", false],
  ["the object of the caller's credential", "404", "signed-in", true, "GET", "/sessions/current", true],
  ["a list", "404", "signed-in", true, "GET", "/sessions", false],
])("%s: the status %s is declared if it is possible", (_, status, scope, readOnly, verb, path, isDeclared) => {
  const method = partial<ApiMethod>({ scope, readOnly });
  const rest = partial<RestRule>({ verb, path, pathFields: [] });
  expect(Object.hasOwn(errorResponses(method, rest), status)).toBe(isDeclared);
});
