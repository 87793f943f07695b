import { expect, test } from "vitest";
import { exactDigits, parseExactly } from "./exact-json.ts";

// biome-ignore format: a table, aligned so that it reads as one
const exact = [
  "0", "-0", "0.1", "1e3", "1E+3", "1.10", "100000000000000000000", "9007199254740992", "1e21", "1e-7", "5e-324",
  "0.30000000000000004", "1.7976931348623157e308", "-12.50", "0.000", "0e99", "1234567890.12345",
];
test.each(exact)("%s is a number", (text) => expect(parseExactly(`[${text}]`)).toEqual([Number(text)]));

// biome-ignore format: a table, aligned so that it reads as one
const rounded = [
  "12345678901234567890", "9007199254740993", "-9007199254740993", "0.1234567890123456789", "1e400", "1e-400",
  "1.00000000000000000001", "12345678901234567.5e2", `1${"0".repeat(2_000)}`,
];
test.each(rounded)("%s keeps its digits", (text) => {
  const written = `{"a":[${text},1]}`;
  const value = parseExactly(written) as { readonly a: readonly unknown[] };
  expect(JSON.stringify(value)).toBe(written);
  expect(value.a.map(exactDigits)).toEqual([text, undefined]);
});

test("digits in strings are text", () =>
  expect(parseExactly('{"n":"12345678901234567890","e":"1e400"}')).toEqual({
    n: "12345678901234567890",
    e: "1e400",
  }));

test("a text that is not JSON is a SyntaxError", () => {
  for (const text of ["{", '{"a":12345678901234567890', ""]) expect(() => parseExactly(text)).toThrow(SyntaxError);
});
