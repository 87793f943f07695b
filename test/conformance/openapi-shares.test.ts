import { type RestMethod, restMethods } from "@holdfast/testing/api/api-methods.ts";
import { expect, test } from "vitest";
import { accepted } from "../system/openapi-conformance/accepted.ts";
import { shares } from "../system/openapi-conformance/shares.ts";

// The long lane tests every operation of /openapi.json in shares; what it cannot find there is red here.

const owners = ["/managed-services", "/app-services", "/files-services"];

test("each tag of /openapi.json is in one share of its test", () => {
  const tags = new Set(restMethods.map(({ method }) => method.parent.name.replace(/Service$/, "")));
  expect(tags.size).toBeGreaterThan(30);
  const shared = Object.values(shares).flatMap(({ tags: ofShare }) => ofShare);
  expect(shared.toSorted()).toEqual([...tags].toSorted());
});

test("each helper of a share, and each operation with an accepted finding, is in /openapi.json", () => {
  const ids = new Set(restMethods.map(({ method }) => method.localName));
  const helpers = Object.values(shares).flatMap(({ helpers: ofShare }) => ofShare);
  expect(helpers.filter((id) => !ids.has(id))).toEqual([]);
  // The document has other names of variables than the protos, and methods about owners at the path of each kind.
  const withoutNames = (operation: string) => operation.replaceAll(/\{[^}]*\}/g, "{}");
  const pathsOf = ({ path, rules }: RestMethod) =>
    rules.ofOwner ? owners.map((owner) => path.replace(/^\/[^/]*/, owner)) : [path];
  const operations = new Set(
    restMethods.flatMap((method) => pathsOf(method).map((path) => withoutNames(`${method.verb} ${path}`))),
  );
  const named = accepted.flatMap((row) => row.operations);
  expect(named.filter((operation) => !operations.has(withoutNames(operation)))).toEqual([]);
});
