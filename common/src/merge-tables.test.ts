import { expect, test } from "vitest";
import { mergeTables } from "./errors.ts";

test("the rows of all tables are in one, and a name is in one table", () => {
  const gathered: { readonly a: 1; readonly b: 2; readonly c: 3 } = mergeTables({
    first: { a: 1, b: 2 },
    second: { c: 3 },
  });
  expect(gathered).toEqual({ a: 1, b: 2, c: 3 });
  expect(() => mergeTables({ first: { a: 1 }, second: { b: 2 }, third: { a: 1 } })).toThrow(
    "first and third both have a",
  );
});
