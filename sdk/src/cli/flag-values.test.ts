import { expect, test } from "vitest";
import { factor } from "./flag-values.ts";

test.each([
  ["0", 0],
  ["2", 2],
  ["1.5", 1.5],
])("%s is a factor", (text, value) => {
  expect(factor(text)).toBe(value);
});

test.each(["", "two", "1,5", "-1", "NaN", "Infinity", "1e3", ".5", "1.", " 1"])("%j is no factor", (text) => {
  expect(() => factor(text)).toThrow("not a number");
});
