import { expect, test } from "vitest";
import { differsOnlyInPrimary } from "./auth.ts";

// biome-ignore format: a table, aligned so that it reads as one
const cases = [
  ["nothing was done yet",          null,                   "s/db/#1",        false],
  ["the same primary",              "s/db/#1",              "s/db/#1",        true],
  ["another primary",               "s/db/#1",              "s/db/#2",        true],
  ["restored data",                 "s/db/#1",              "s/db/restore#1", false],
  ["another database",              "s/db/#1",              "s/other/#1",     false],
  ["another service",               "s/db/restore#3",       "t/db/restore#3", false],
] as const;

test.each(cases)(
  "all erasures are replayed over other data, and those of the last day after %s",
  (_name, over, data, is) => {
    expect(differsOnlyInPrimary(over, data)).toBe(is);
  },
);
