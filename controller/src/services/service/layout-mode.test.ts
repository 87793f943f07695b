import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { expect, test } from "vitest";
import { sourceOf } from "../backup/archive/archive.ts";
import { hasDatabases, layoutModeFault, layoutModeOf } from "./layout-mode.ts";

test("services of T-SQL without a stored layout have one database", () => {
  expect(layoutModeOf({ databaseType: "tsql" })).toBe("single-db");
  expect(hasDatabases({ databaseType: "tsql" })).toBe(false);
  expect(hasDatabases({ databaseType: "tsql", layoutMode: "multi-db" })).toBe(true);
});

test("other engines have no layout, and a request for one is refused with the name of the field", () => {
  expect(layoutModeOf({ databaseType: "postgresql" })).toBeUndefined();
  expect(hasDatabases({ databaseType: "postgresql" })).toBe(true);
  expect(hasDatabases({ databaseType: "kafka" })).toBe(false);
  const detail = "postgresql has no layouts";
  expect(layoutModeFault("postgresql", "single-db")).toMatchObject({ field: "layout_mode", detail });
  expect(layoutModeFault("tsql", "multi-db")).toBeUndefined();
  expect(layoutModeFault("postgresql", undefined)).toBeUndefined();
});

test("copies of a service inherit its layout", () => {
  const service = runningService();
  const source = sourceOf({ ...service, spec: { ...service.spec, databaseType: "tsql", layoutMode: "multi-db" } });
  expect(source.layoutMode).toBe("multi-db");
  expect(sourceOf(service)).not.toHaveProperty("layoutMode");
});
