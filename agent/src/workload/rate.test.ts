import { expect, test } from "vitest";
import { createRate } from "./rate.ts";

type Reading = readonly [counter: number | undefined, atMs: number, expected: number | undefined];

const cases: readonly (readonly [string, readonly Reading[]])[] = [
  ["the first reading has no rate", [[500, 1_000, undefined]]],
  [
    "growth counts by its own time, however late the reading",
    [
      [0, 0, undefined],
      [150, 15_000, 10],
      [360, 36_000, 10],
    ],
  ],
  [
    "nothing that came is zero",
    [
      [7, 0, undefined],
      [7, 15_000, 0],
    ],
  ],
  [
    "a reset counter has no rate until the next reading",
    [
      [900, 0, undefined],
      [10, 15_000, undefined],
      [40, 30_000, 2],
    ],
  ],
  [
    "a missing value is not zero",
    [
      [0, 0, undefined],
      [undefined, 15_000, undefined],
      [300, 30_000, undefined],
      [330, 45_000, 2],
    ],
  ],
  [
    "after a long sleep it starts again",
    [
      [0, 0, undefined],
      [100, 60_001, undefined],
      [130, 75_001, 2],
    ],
  ],
  [
    "two readings at the same time have no rate",
    [
      [0, 5, undefined],
      [9, 5, undefined],
    ],
  ],
];

test.each(cases)("%s", (_, readings) => {
  const rate = createRate(60_000);
  expect(readings.map(([counter, atMs]) => rate.next(counter, atMs))).toEqual(
    readings.map(([, , expected]) => expected),
  );
});
