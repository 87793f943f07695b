import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { testOwners } from "@holdfast/testing/machines/test-owners.ts";

const cache = (id: string) => ({ kind: "cache", id });
const service = (id: string) => ({ kind: "managed-service", id });

test("texts and remedies come from the kind of owner, with the id of an owner that is absent", () => {
  expect(testOwners.textOf(cache("c"))).toBe("cache cache-c");
  expect(testOwners.textOf(service("s"))).toBe("service s");
  expect(testOwners.remedyOf(cache("c"))).toBe("Empty the cache");
  expect(testOwners.remediesOf([service("a"), cache("c"), service("b")])).toBe(
    "Delete the services a, b first. Empty the caches c first.",
  );
  expect(testOwners.remediesOf([])).toBe("");
});

test("a text names twenty owners of a kind, and the number of the others", () => {
  const many = Array.from({ length: 25 }, (_, at) => service(`s-${at}`));
  expect(testOwners.remediesOf(many)).toMatch(/^Delete the services s-0, .*, s-19 and 5 more first\.$/);
});

test("machines of an owner that no system handles stay", () => {
  const alien = { kind: "alien", id: "x" };
  expect(testOwners.describe(alien)).toBeUndefined();
  expect(testOwners.isReplaceable(alien)).toBe(false);
  expect(testOwners.onHostLost(alien)).toBe("retains");
  expect(testOwners.drain(alien, { hasOthers: true, mayStop: true }).outcome).toBe("blocks");
});

test("the fleet names no kind of owner", () => {
  const folder = join(import.meta.dirname, "..");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts") && !path.endsWith(".conformance.ts"))
    .map((path) => [path, readFileSync(join(folder, path), "utf8")] as const);
  expect(files.length).toBeGreaterThan(50);
  const naming = files.filter(([, text]) =>
    /"(managed-service|drill)"|managedServiceKind|drillKind|#services/.test(text),
  );
  expect(naming.map(([path]) => path)).toEqual([]);
});
