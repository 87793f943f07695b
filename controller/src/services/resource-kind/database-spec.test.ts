import { describe, expect, test } from "vitest";
import { normalizedDatabase } from "./database-spec.ts";

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
