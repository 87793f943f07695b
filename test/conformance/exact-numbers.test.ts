import fc from "fast-check";
import { isExact } from "@holdfast/gateway/json/exact-number.ts";
import { exactDigits, parseExactly } from "@holdfast/sdk/exact-json.ts";
import { expect, test } from "vitest";

// The SDK imports no other package, and the gateway no client, so each has the rule: a number that the SDK parses to a
// double is one that the gateway accepts.

const digits = (maxLength: number) => fc.stringMatching(new RegExp(`^[0-9]{1,${maxLength}}$`));
const integer = digits(25).map((text) => text.replace(/^0+(?=\d)/, ""));
const numbers = fc
  .tuple(
    fc.constantFrom("", "-"),
    integer,
    fc.option(digits(25), { nil: "" }),
    fc.option(fc.tuple(fc.constantFrom("e", "E"), fc.constantFrom("", "+", "-"), digits(3)), { nil: [] }),
  )
  .map(
    ([sign, integral, fraction, exponent]) =>
      `${sign}${integral}${fraction === "" ? "" : `.${fraction}`}${exponent.join("")}`,
  );
/** Texts of doubles, which are exact, and those of their halves and neighbors, which are mostly not. */
const nearDoubles = fc
  .tuple(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom("", "1", "5", "0"))
  .map(([value, digit]) =>
    String(value)
      .replace(/(?=e|$)/, digit)
      .replace(/^(-?)0+(?=[0-9])/, "$1"),
  );

test("the gateway accepts the numbers that the SDK does not round, and no others", () => {
  const verdicts = new Set<boolean>();
  fc.assert(
    fc.property(fc.oneof(numbers, nearDoubles), (text) => {
      const parsed = parseExactly(`[${text}]`) as readonly unknown[];
      const accepted = isExact({ kind: "number", text, value: Number(text) });
      verdicts.add(accepted);
      expect(exactDigits(parsed[0]) === undefined, text).toBe(accepted);
    }),
    { numRuns: 2_000 },
  );
  expect(verdicts.size).toBe(2);
});
