import { expect, test } from "vitest";
import { distance, parseBranch, parsePosition } from "./binlog-position.ts";

test.each([
  ["3/12/100", "3/12/350", 250],
  ["3/12/350", "3/12/100", -250],
  ["3/12/100", "3/12/100", 0],
  ["3/12/900", "3/13/40", 40],
  ["3/12/900", "3/13/0", 1],
  ["3/12/900", "3/15/40", 2 * 67_108_864 + 40],
  ["3/15/40", "3/12/900", -2 * 67_108_864 - 40],
  ["3/12/900", "5/2/4", 4],
  ["3/12/900", "5/12/950", 950],
  ["5/2/4", "3/12/900", -4],
])("from %s to %s it is %d bytes", (from, to, bytes) => {
  expect(distance(from, to)).toBe(bytes);
});

test.each(["", "3/12", "0/3000060", "3/12/-1", "a/b/c"])("%j is no position", (text) => {
  expect(() => parsePosition(text)).toThrow(text);
});

test("a branch is a file of a server", () => {
  const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
  expect(parseBranch(`${server}:12`)).toEqual({ server, file: 12 });
  expect(() => parseBranch("3")).toThrow("3");
});
