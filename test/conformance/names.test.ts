import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CATALOG } from "@holdfast/common/errors.ts";
import { expect, test } from "vitest";
import { sourceFiles } from "../../bin/source-files.js";
import { nameScopes } from "@holdfast/testing/contract/contracts.ts";

const checkout = join(import.meta.dirname, "../..");
const conflictKeys = Object.entries(CATALOG).flatMap(([key, { grpc }]) => (grpc === "ALREADY_EXISTS" ? [key] : []));

// `system/access/names.ts` asserts these scopes over the API.
test("the contract beside each file that rejects or claims a name declares the scope of its uniqueness", () => {
  expect(conflictKeys).toContain("NAME_TAKEN");
  const refuses = new RegExp(String.raw`"(?:${conflictKeys.join("|")})"[,)]|claimName\(|globalNames: `);
  const found = sourceFiles("controller/src").filter(
    (path) => path.endsWith(".ts") && !/\.(?:test|contract)\.ts$/.test(path) && refuses.test(textOf(path)),
  );
  expect(found.map((path) => path.replace("controller/src/", "")).sort()).toEqual(Object.keys(nameScopes).sort());
});

test("names that are global are those of users, and of operators' organizations", () => {
  const found = sourceFiles("controller/src").filter((path) => textOf(path).includes("globalNames: "));
  expect(found.sort()).toEqual([
    "controller/src/access/credential/credential.ts",
    "controller/src/access/organization/organization.ts",
  ]);
});

function textOf(path: string): string {
  return readFileSync(join(checkout, path), "utf8");
}
