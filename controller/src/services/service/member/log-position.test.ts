import { expect, test } from "vitest";
import { hasReplayedBeyond, lagOf, positionOf } from "./log-position.ts";

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["0/10",       16n],
  ["1/0",        1n << 32n],
  ["4711",       4711n],
  ["",           0n],
  ["somewhere",  0n],
])("the position %s is at byte %s", (text, bytes) => {
  expect(positionOf(text)).toBe(bytes);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["of all that it has not replayed",        "1000", "h", "900",  "h",   100n],
  ["of nothing, when it is ahead",           "1000", "h", "1001", "h",   0n],
  ["of everything, with another history",    "1000", "h", "5000", "old", 1000n],
  ["of a log with timelines",                "0/20", "",  "0/10", "",    16n],
])("a replica lacks the bytes %s", (_what, position, history, replayedPosition, own, bytes) => {
  expect(lagOf({ position, history }, { replayedPosition, history: own })).toBe(bytes);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["one that replayed the last record",      "1001", "h",   "h", true],
  ["none that lacks it",                     "1000", "h",   "h", false],
  ["none with another history, however far", "9999", "old", "h", false],
  ["any, for an end without a history",      "1001", "h",   "",  true],
])("the end of a log is behind %s", (_what, replayedPosition, own, history, is) => {
  expect(hasReplayedBeyond({ replayedPosition, history: own }, { position: "1000", history })).toBe(is);
});
