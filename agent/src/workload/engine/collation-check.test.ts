import { expect, it } from "vitest";
import type { CollationUse } from "../../engines/contents-facets.ts";
import { collationCheck } from "./collation-check.ts";

const use = (collation: string, recorded: string, actual: string): CollationUse => ({
  database: "shop",
  collation,
  library: "libc",
  recorded,
  actual,
});

it("is healthy while every library has the version that the data was created with", () => {
  expect(collationCheck([])).toEqual({ name: "collation", status: "healthy", reason: "" });
  expect(collationCheck([use("en_US", "2.36", "2.36")]).status).toBe("healthy");
});

it("names the changed libraries and the remedy", () => {
  const check = collationCheck([
    use("C.UTF-8", "2.36", "2.36"),
    use("en_US", "2.36", "2.41"),
    use("de_DE", "2.36", ""),
  ]);
  expect(check.status).toBe("degraded");
  expect(check.reason).toContain(
    "en_US in database shop (libc 2.36, now 2.41), de_DE in database shop (libc 2.36, now none).",
  );
  expect(check.reason).toContain("REINDEX");
  const many = collationCheck(Array.from({ length: 9 }, (_, number) => use(`c${number}`, "1", "2")));
  expect(many.reason).toContain(" and 6 more.");
});
