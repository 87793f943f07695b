import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { days, factor, hours, minutes, seconds, timeOrAge, timeOrDelay } from "./flag-values.ts";

beforeEach(() => vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2030-01-31T12:00:00Z") }));
afterEach(() => vi.useRealTimers());

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
])("%s is a duration in minutes", (text, value) => {
  expect(minutes(text)).toBe(value);
});

test.each(["", "m", "-5m", "1.5h", "5 m", "1e3", "5w"])("%j is not a duration", (text) => {
  expect(() => minutes(text)).toThrow("it is not a duration such as 30m, 24h, 7d or 5 (minutes)");
});

test.each([
  [seconds, "90", 90],
  [seconds, "30m", 1_800],
  [hours, "12", 12],
  [hours, "7d", 168],
  [hours, "120m", 2],
  [days, "14", 14],
  [days, "48h", 2],
])("a duration in the unit of its flag: %s %s is %d", (parse, text, value) => {
  expect(parse(text)).toBe(value);
});

test("a duration that is not an integer of the flag's unit is refused", () => {
  expect(() => minutes("5s")).toThrow("it is not a whole number of minutes");
  expect(() => hours("90m")).toThrow("it is not a whole number of hours");
});

test.each([
  [timeOrAge, "30m", "2030-01-31T11:30:00.000Z"],
  [timeOrDelay, "30m", "2030-01-31T12:30:00.000Z"],
  [timeOrDelay, "1d", "2030-02-01T12:00:00.000Z"],
  [timeOrDelay, "2031-01-01T00:00:00Z", "2031-01-01T00:00:00Z"],
  [timeOrAge, "2029-12-31T23:00:00.5+01:00", "2029-12-31T23:00:00.5+01:00"],
  [timeOrAge, "2029-12-31", "2029-12-31T00:00:00Z"],
])("a distance from now is a time: %s %s is %s", (parse, text, time) => {
  expect(parse(text)).toBe(time);
});

test.each(["", "yesterday", "12:00", "2029-12-31 10:00", "2029-13-01", "2029-12-31T25:00:00Z", "1w", "-1h"])(
  "%j is no time, and the refusal has the forms of times",
  (text) => {
    expect(() => timeOrAge(text)).toThrow(
      "it is not a time such as 2026-11-29T08:00:00Z, a date such as 2026-11-29 (in UTC), or an age such as 30m",
    );
    expect(() => timeOrDelay(text)).toThrow("or a distance from now such as 30m");
  },
);
