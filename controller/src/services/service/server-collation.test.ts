import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { findCollation } from "@holdfast/tds/types/collation.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { expect, test } from "vitest";
import { sourceOf } from "../backup/archive/archive.ts";
import { chosenCollation, serverCollationFault, serverCollationOf } from "./server-collation.ts";

const fallback = "SQL_Latin1_General_CP1_CI_AS";
const sensitive = "SQL_Latin1_General_CP1_CS_AS";

test("the default is stored nowhere, so that services of before have it", () => {
  expect(serverCollationOf({ databaseType: "tsql" })).toBe(fallback);
  expect(serverCollationOf({ databaseType: "tsql", serverCollation: sensitive })).toBe(sensitive);
  expect(chosenCollation("tsql", fallback)).toEqual({});
  expect(chosenCollation("tsql", sensitive)).toEqual({ serverCollation: sensitive });
});

test("other engines have none, and an unknown name is refused with the list", () => {
  expect(serverCollationOf({ databaseType: "postgresql" })).toBeUndefined();
  expect(serverCollationFault("postgresql", fallback)).toMatchObject({
    field: "server_collation",
    code: "not_supported",
  });
  expect(serverCollationFault("tsql", "Japanese_CI_AS")?.detail).toContain(sensitive);
  expect(serverCollationFault("tsql", sensitive)).toBeUndefined();
});

test("each collation of the catalog is one of the front end", () => {
  for (const name of engineOf("tsql")?.serverCollations ?? []) expect(findCollation(name)?.name).toBe(name);
});

test("copies of a service inherit its collation", () => {
  const service = runningService();
  const spec = { ...service.spec, databaseType: "tsql", serverCollation: sensitive };
  expect(sourceOf({ ...service, spec }).serverCollation).toBe(sensitive);
  expect(sourceOf(service)).not.toHaveProperty("serverCollation");
});
