import { expect, test } from "vitest";
import { createRate } from "./rate.ts";

type Look = readonly [counter: number | undefined, atMs: number, expected: number | undefined];

const cases: readonly (readonly [string, readonly Look[]])[] = [
  ["the first look has no rate", [[500, 1_000, undefined]]],
  [
    "what came counts by its own time, however late the look is",
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
    "a counter that began anew has no rate until the next look",
    [
      [900, 0, undefined],
      [10, 15_000, undefined],
      [40, 30_000, 2],
    ],
  ],
  [
    "a look without a value is no zero",
    [
      [0, 0, undefined],
      [undefined, 15_000, undefined],
      [300, 30_000, undefined],
      [330, 45_000, 2],
    ],
  ],
  [
    "after a long sleep it begins anew",
    [
      [0, 0, undefined],
      [100, 60_001, undefined],
      [130, 75_001, 2],
    ],
  ],
  [
    "two looks of one moment have no time between them",
    [
      [0, 5, undefined],
      [9, 5, undefined],
    ],
  ],
];

test.each(cases)("%s", (_, looks) => {
  const rate = createRate(60_000);
  expect(looks.map(([counter, atMs]) => rate.next(counter, atMs))).toEqual(looks.map(([, , expected]) => expected));
});
