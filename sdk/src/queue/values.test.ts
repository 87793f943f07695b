import { describe, expect, test } from "vitest";
import { errorText, retryDelay, integerSeconds } from "./values.ts";

describe("the text of an error", () => {
  const throwing = Object.defineProperty(new Error("x"), "message", {
    get() {
      throw new Error("planted");
    },
  });
  test.each<[string, unknown, string]>([
    ["an error", new TypeError("no"), "TypeError: no"],
    ["a string", "no", "no"],
    ["nothing", undefined, "undefined"],
    ["an object without a prototype", Object.create(null), "an error without a text"],
    ["an error whose message throws", throwing, "an error without a text"],
    ["a NUL", "a\0b", "ab"],
    ["half a surrogate pair", "a\ud83d", "a\ufffd"],
    ["a pair at the cut", `${"x".repeat(4095)}🙂`, `${"x".repeat(4095)}\ufffd`],
    ["a long text", "é".repeat(10_000), "é".repeat(4096)],
  ])("is well-formed for %s", (_, error, text) => {
    expect(errorText(error)).toBe(text);
  });
});

test.each<[string, unknown, number, number]>([
  ["the function's seconds", 10, 8, 12],
  ["a fraction", 0.5, 0.4, 0.6],
  ["no negative delay", -5, 0, 0],
  ["the longest delay of the API for infinity", Number.POSITIVE_INFINITY, 28_800, 43_200],
  ["the default for NaN", Number.NaN, 6.4, 9.6],
  ["the default for no number", "10", 6.4, 9.6],
])("the delay of a retry is %s, with a jitter of a fifth", (_, seconds, min, max) => {
  expect(retryDelay(seconds, 3, () => 0)).toBeCloseTo(min);
  expect(retryDelay(seconds, 3, () => 1)).toBeCloseTo(max);
  expect(integerSeconds(retryDelay(seconds, 3, () => 1))).toBeLessThanOrEqual(43_200);
});
