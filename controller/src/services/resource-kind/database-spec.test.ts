import { describe, expect, test } from "vitest";
import { normalizedDatabase } from "./database-spec.ts";

test("the collation of a T-SQL resource is absent for the default", () => {
  const spec = { database_type: "tsql", plan: "tier-1", storage_gb: 1 };
  const normalized = normalizedDatabase(spec);
  expect(normalizedDatabase({ ...spec, server_collation: "SQL_Latin1_General_CP1_CI_AS" })).toEqual(normalized);
  const other = { server_collation: "Latin1_General_BIN2" };
  expect(normalizedDatabase({ ...spec, ...other })).toEqual({ ...normalized, ...other });
});

describe("the layout of a T-SQL resource", () => {
  test("is absent for the default, so that specs of before are unchanged", () => {
    const spec = { database_type: "tsql", plan: "tier-1", storage_gb: 1 };
    const normalized = { database_type: "tsql", plan_name: "tier-1", storage_size_gb: 1 };
    expect(normalizedDatabase(spec)).toEqual(normalized);
    expect(normalizedDatabase({ ...spec, layout_mode: "single-db" })).toEqual(normalized);
    expect(normalizedDatabase({ ...spec, layout_mode: "multi-db" })).toEqual({
      ...normalized,
      layout_mode: "multi-db",
    });
  });
});
