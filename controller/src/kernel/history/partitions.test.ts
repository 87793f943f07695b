import { expect, test } from "vitest";
import { spanOf } from "./partitions.ts";

test.each([
  ["month", "2026-01-31T23:59:59.999Z", 1, "2026_02", "2026-02-01T00", "2026-03-01T00"],
  ["month", "2026-12-01T00:00:00Z", 0, "2026_12", "2026-12-01T00", "2027-01-01T00"],
  ["month", "2026-11-30T00:00:00Z", 2, "2027_01", "2027-01-01T00", "2027-02-01T00"],
  ["day", "2026-02-28T12:00:00Z", 1, "2026_03_01", "2026-03-01T00", "2026-03-02T00"],
  ["day", "2026-01-01T00:00:00Z", -1, "2025_12_31", "2025-12-31T00", "2026-01-01T00"],
  ["quarterDay", "2026-11-21T23:59:00Z", 0, "2026_11_21_18", "2026-11-21T18", "2026-11-22T00"],
  ["quarterDay", "2026-11-21T00:00:00Z", -1, "2026_11_20_18", "2026-11-20T18", "2026-11-21T00"],
] as const)("of kind %s, at %s and %d later, is %s", (kind, time, offset, suffix, from, to) => {
  const timestampOf = (hour: string) => `${hour}:00:00.000Z`;
  expect(spanOf(kind, Date.parse(time), offset)).toEqual({ suffix, from: timestampOf(from), to: timestampOf(to) });
});
