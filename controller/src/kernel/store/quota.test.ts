import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { requireAmount } from "./quota.ts";

const refused = (error?: "QUEUE_LIMIT_REACHED") => () =>
  requireAmount(
    { name: "storageGb", label: "GB", ...(error && { error }) },
    { used: 9, requested: 2, limit: 10 },
    "It has",
  );

test("a refusal has the figures that its help names, and the quota by its public name", () => {
  // oxlint-disable-next-line holdfast/names -- a member of the API
  const members = { quota: "storage_gb", used: 9, asked: 2, limit: 10 };
  for (const error of [undefined, "QUEUE_LIMIT_REACHED"] as const)
    expect(refused(error)).toThrow(expect.objectContaining({ key: error ?? "QUOTA_EXCEEDED", members }));
  const exact = { used: 9, requested: 1, limit: 10 };
  expect(() => requireAmount({ name: "storageGb", label: "GB" }, exact, "It has")).not.toThrow();
});

test("no other file throws QUOTA_EXCEEDED, so each refusal has them", () => {
  const root = join(import.meta.dirname, "..", "..");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) =>
    /(?<!\.test)\.ts$/.test(path),
  );
  const naming = files.filter((path) => readFileSync(join(root, path), "utf8").includes('"QUOTA_EXCEEDED"'));
  expect(naming).toEqual(["kernel/store/quota.ts"]);
});
