import { expect, test } from "vitest";
import { parseLsn, formatLsn, segmentBytes, segmentName, segmentStart } from "./lsn.ts";

test.each([
  ["0/0", 0n],
  ["0/3000028", 0x3000028n],
  ["1F/FFFFFFFF", 0x1f_ffff_ffffn],
])("%s is a position and written so again", (text, position) => {
  expect(parseLsn(text)).toBe(position);
  expect(formatLsn(position)).toBe(text);
});

test.each(["", "0", "0/", "x/1", "0/123456789"])("%j is not an LSN", (text) => {
  expect(() => parseLsn(text)).toThrow("is not an LSN");
});

test.each([
  [1, 0n, "000000010000000000000000"],
  [1, segmentBytes * 3n + 5n, "000000010000000000000003"],
  [2, 0x1_0000_0000n, "000000020000000100000000"],
  [10, 0xff_ff00_0000n, "0000000A000000FF000000FF"],
])("on timeline %i position %i is in %s", (timeline, position, name) => {
  expect(segmentName(timeline, position)).toBe(name);
  expect(segmentStart(name)).toEqual({ timeline, position: (position / segmentBytes) * segmentBytes });
});

test("a timeline history file is not a segment", () => {
  expect(segmentStart("00000002.history")).toBeUndefined();
});
