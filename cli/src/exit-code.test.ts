import { expect, test } from "vitest";
import type { Operation } from "@holdfast/sdk/responses.ts";
import { OperationFailed } from "@holdfast/sdk/wait.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { errorOf, type Problem } from "@holdfast/sdk/errors.ts";
import { exitCodeOf, messageOf, WorkFailed } from "./exit-code.ts";

const problem = (code: string, more: Partial<Problem> = {}): Problem => ({
  type: "about:blank",
  title: "Not possible",
  status: 409,
  detail: "orders is protected",
  instance: "",
  code,
  errors: [],
  ...more,
});

test.each([
  [
    "the command that helps",
    problem("deletion_protected", { help: "PATCH deletion_protection to false first." }),
    "orders is protected (deletion_protected)\n  holdfast services update SERVICE --no-deletion-protection allows it, or holdfast files update for a files service",
  ],
  [
    "the advice of the installation",
    problem("target_not_allowed", { help: "An operator can allow more networks with HOLDFAST_ALLOW_EGRESS." }),
    "orders is protected (target_not_allowed)\n  An operator can allow more networks with HOLDFAST_ALLOW_EGRESS.",
  ],
  ["no advice of an older installation", problem("new_code"), "orders is protected (new_code)"],
  ["no advice where it is null", problem("new_code", { help: null }), "orders is protected (new_code)"],
  [
    "the faults alone, which say what to change",
    problem("invalid_request", {
      help: "Each entry of errors names a field.",
      errors: [{ field: "storage_size_gb", pointer: "/storage_size_gb", code: "range", detail: "must be 1 to 16384" }],
    }),
    "Not possible (invalid_request)\n  storage_size_gb: must be 1 to 16384",
  ],
])("an error is printed with %s", (_, body, text) => {
  expect(messageOf(errorOf(body))).toBe(text);
});

test("a sign-in that failed exits with 7", () => {
  expect(exitCodeOf(new WorkFailed("the sign-in of shop has failed"))).toBe(7);
});

test("an operation that failed, such as a deployment of an app, exits with 7", () => {
  const operation = partial<Operation>({ type: "deploy", status: "failed", error: null });
  expect(exitCodeOf(new OperationFailed(operation))).toBe(7);
});
