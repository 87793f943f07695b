import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sourceFiles } from "../../bin/source-files.js";

const checkout = join(import.meta.dirname, "../..");
const names = /\b(?:primaryOf|isPrimary|namedPrimary|primaryNodeId)\b/;
const strategy = "controller/src/services/service/member/primary-replicas/";

/** Files that store, restore or send the field; all other files call the roles and strategy of the topology. */
const records = [
  "controller/src/operator/inventory/fleet-api.ts",
  "controller/src/services/backup/restore/undelete.ts",
  "controller/src/services/service/managed-service-message.ts",
  "controller/src/services/service/managed-service.ts",
  "controller/src/services/service/new-service.ts",
];

test("only the strategy of primary and replicas names a primary", () => {
  const files = sourceFiles("controller/src").filter((file) => file.endsWith(".ts"));
  const naming = files.filter(
    (file) =>
      !file.startsWith(strategy) &&
      !/\.(?:test|contract)\.ts$/.test(file) &&
      names.test(readFileSync(join(checkout, file), "utf8")),
  );
  expect(files.some((file) => file.startsWith(strategy))).toBe(true);
  expect(naming.sort()).toEqual(records);
});
