import { expect, test } from "vitest";
import { factor, minutes } from "./flag-values.ts";

test.each([
  ["0", 0],
  ["2", 2],
  ["1.5", 1.5],
])("%s is a factor", (text, value) => {
  expect(factor(text)).toBe(value);
});

test.each(["", "two", "1,5", "-1", "NaN", "Infinity", "1e3", ".5", "1.", " 1"])("%j is not a factor", (text) => {
  expect(() => factor(text)).toThrow("not a number");
});

test.each([
  ["5", 5],
  ["5m", 5],
  ["1h", 60],
])("%s is a time", (text, value) => {
  expect(minutes(text)).toBe(value);
});

test.each(["", "m", "5s", "-5m", "1.5h", "5 m", "1e3"])("%j is not a time", (text) => {
  expect(() => minutes(text)).toThrow("such as 5m");
});
