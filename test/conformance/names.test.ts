import { readFileSync } from "node:fs";
import { join } from "node:path";
import { CATALOG } from "@holdfast/common/errors.ts";
import { expect, test } from "vitest";
import { sourceFiles } from "../../bin/source-files.js";

const checkout = join(import.meta.dirname, "../..");
const taken = Object.entries(CATALOG).flatMap(([key, { grpc }]) => (grpc === "ALREADY_EXISTS" ? [key] : []));

/**
 * Files that reject or claim a name, by the scope in which the name is unique. `system/access/names.ts` asserts it over
 * the API.
 */
// biome-ignore format: a table, aligned so that it reads as one
const scopes: Readonly<Record<string, string>> = {
  "access/credential/credential.ts":                "global: people sign in by it, before an organization is known",
  "access/operator/operator-api.ts":                "global: the same names of users, which operators see",
  "access/organization/member-handlers.ts":         "organization: its members",
  "access/organization/organization-admin-api.ts":  "global: among the organizations that operators make, which they see",
  "access/organization/organization-api.ts":        "global: the same; a user's own creations claim no name",
  "access/organization/organization.ts":            "global: the same",
  "access/user/set-up.ts":                          "global: the same names of users",
  "access/user/user-api.ts":                        "global: the same names of users; a setup token signs in",
  "app/app/app-api.ts":                             "organization; a database of a service is attached once",
  "app/app/domain-api.ts":                          "an app; global once verified, by a TXT record that only the domain's owner sets",
  "app/auth/user-api.ts":                           "an app: addresses of its users",
  "bundles/launch.ts":                              "organization",
  "bundles/project/project-api.ts":                 "organization",
  "export/metrics-export-api.ts":                   "organization or service: one of each destination type",
  "fleet/host/host-api.ts":                         "global: hosts, of operators alone",
  "kernel/store/unit-of-work.ts":                   "by the claim: an organization, unless its kind has globalNames",
  "queue/queue-api.ts":                             "service",
  "services/contents/change/engine-changes.ts":     "service: names in its engine",
  "services/service/managed-service-api.ts":        "organization",
  "services/service/service-creation.ts":           "organization",
};

test("each file that rejects or claims a name declares the scope of its uniqueness", () => {
  expect(taken).toContain("NAME_TAKEN");
  const refuses = new RegExp(String.raw`"(?:${taken.join("|")})"[,)]|claimName\(|globalNames: `);
  const found = sourceFiles("controller/src").filter(
    (path) => path.endsWith(".ts") && !path.endsWith(".test.ts") && refuses.test(textOf(path)),
  );
  expect(found.map((path) => path.replace("controller/src/", "")).sort()).toEqual(Object.keys(scopes).sort());
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
