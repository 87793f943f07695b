import { partial } from "@holdfast/testing/partial.ts";
import type { Catalog, Upgrade } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { newerVersions, upgradeRefusal } from "./upgrade-view.ts";

test("a service can be upgraded to the newer versions that run here, newest first", () => {
  const versions = ["9.6", "16", "17", "18"].map((version) => ({ version, available: version !== "17" }));
  const catalog = partial<Catalog>({ engines: [{ database_type: "postgresql", title: "PostgreSQL", versions }] });
  const of = (version: string) => newerVersions(catalog, { database_type: "postgresql", version });
  expect(of("9.6")).toEqual([
    ["18", "PostgreSQL 18"],
    ["16", "PostgreSQL 16"],
  ]);
  expect(of("18")).toEqual([]);
  expect(newerVersions(catalog, { database_type: "valkey", version: "8" })).toEqual([]);
});

const finding = (code: string, blocking: boolean) => ({ code, blocking, message: "." });
test.each([
  [[], false, undefined],
  [[finding("downtime", false)], false, undefined],
  [[finding("no_room", true)], true, /first, then check it again/],
  [[finding("text_order", true)], false, /Accept the change/],
  [[finding("text_order", true)], true, undefined],
] as const)("an upgrade with the findings %j, accepted: %s, is refused: %s", (findings, accepts, refusal) => {
  const text = upgradeRefusal(partial<Upgrade>({ findings }), accepts);
  if (refusal === undefined) expect(text).toBeUndefined();
  else expect(text).toMatch(refusal);
});
