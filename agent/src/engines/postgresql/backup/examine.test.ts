import { expect, test } from "vitest";
import { structureDetail } from "./examine.ts";

test("a drill names the databases that pg_amcheck skips", () => {
  expect(structureDetail([])).toBe("pg_amcheck found nothing wrong.");
  expect(structureDetail(["shut"])).toBe(
    "pg_amcheck found nothing wrong. Database shut was not read: ALLOW_CONNECTIONS is false.",
  );
  expect(structureDetail(["a", "b"])).toContain("Databases a, b were not read");
});
