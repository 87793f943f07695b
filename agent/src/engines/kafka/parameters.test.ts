import { expect, test } from "vitest";
import { nextChanges } from "./parameters.ts";
import { settingSources } from "./stored-settings.ts";

const file = 4;

function changesOf(
  stored: Readonly<Record<string, readonly [value: string, source: number]>>,
  desired: Readonly<Record<string, string>>,
) {
  return nextChanges({
    stored: new Map(Object.entries(stored).map(([name, [value, source]]) => [name, { value, source }])),
    desired: new Map(Object.entries(desired)),
    isParameter: (name) => name !== "former",
  });
}

// biome-ignore format: a table
test.each([
  // name                            running  desired  next
  ["num.io.threads",                 "4",     "64",    "8"],
  ["num.io.threads",                 "4",     "7",     "7"],
  ["num.io.threads",                 "9",     "1",     "4"],
  ["num.network.threads",            "2",     "1",     "1"],
  ["log.cleaner.threads",            "1",     "8",     "2"],
  ["producer.id.expiration.ms",      "1000",  "90000", "90000"],
])("%s goes from %s to %s by way of %s", (name, running, desired, next) => {
  expect(changesOf({ [name]: [running, file] }, { [name]: desired })).toEqual([[name, next]]);
});

test("a value that the broker prints otherwise is no change", () => {
  const stored = { "log.cleaner.min.cleanable.ratio": ["0.0", file], "compression.type": ["gzip", file] } as const;
  expect(changesOf(stored, { "log.cleaner.min.cleanable.ratio": "0", "compression.type": "gzip" })).toEqual([]);
});

test("a setting that is no parameter any more is removed, unless it is not the broker's own", () => {
  const value = (source: number) => ({ former: ["7", source] }) as const;
  expect(changesOf(value(settingSources.broker), {})).toEqual([["former", null]]);
  expect(changesOf(value(file), {})).toEqual([]);
});
