import { expect, test } from "vitest";
import { levelOf, parseReleaseLine } from "./app-log-line.ts";

const stamp = "2026-11-30T11:47:01.123Z";

test.each([
  ["ok", "ok"],
  ["", ""],
  ["10%\r20%\r100%", "10%\r20%\r100%"],
  ["a\u2028b\u2029c", "a\u2028b\u2029c"],
  ["from Windows\r", "from Windows"],
  ["\u001b[31mred\u001b[0m", "red"],
])("the line %j has its time, and nothing of it is in the text", (printed, message) => {
  expect(parseReleaseLine(`${stamp} ${printed}`)).toEqual({ time: new Date(stamp), level: "info", message });
});

test.each([
  ["warning", "Traceback (most recent call last):"],
  ["warning", '{"msg":"no level"}'],
  ["error", "TypeError: x is not a function"],
  ["info", "INFO:root:started"],
  ["debug", "level=debug msg=x"],
])("a line of standard error without a level is a warning: %s for %j", (level, printed) => {
  expect(parseReleaseLine(`${stamp}!${printed}`)).toEqual({ time: new Date(stamp), level, message: printed });
});

test("a line without the keeper's time continues the one before", () => {
  expect(parseReleaseLine("12 bytes of log dropped: the disk was too slow or full")).toBeUndefined();
});

test.each([
  ["error", '{"time":1,"level":"error","msg":"x"}'],
  ["error", '{"level":50,"msg":"x"}'],
  ["warning", '{"severity":"WARNING","message":"x"}'],
  ["debug", '{"level":20,"msg":"x"}'],
  ["info", '{"msg":"\\"level\\":\\"error\\""}'],
  ["info", '{"msg":"no level"}'],
  ["error", 'time=1 level=error msg="x"'],
  ["error", "ERROR something failed"],
  ["error", "[error] something failed"],
  ["error", "ERROR:root:something failed"],
  ["error", "Error: Cannot find module 'x'"],
  ["error", "TypeError: x is not a function"],
  ["error", "2026-11-30 12:00:00,123 ERROR something failed"],
  ["error", "2026-11-30T12:00:00.123Z [fatal] x"],
  ["warning", "WARN slow"],
  ["warning", "warning: slow"],
  ["debug", "DEBUG x"],
  ["info", "error handling is on"],
  ["info", "ERRORS: 0"],
  ["info", "GET /error 200"],
  ["info", "constructor: x"],
])("the level %s of %j", (level, message) => {
  expect(levelOf(message)).toBe(level);
});
