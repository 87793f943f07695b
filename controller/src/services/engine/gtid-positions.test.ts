import fc from "fast-check";
import { expect, test } from "vitest";
import { setPositions } from "@holdfast/testing/controller/set-positions.ts";
import { gtidPositions } from "./gtid-positions.ts";

const a = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
const b = "4f22fa47-71ca-11e1-9e33-c80aa9429562";

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["", "", "same"],
  ["", `${a}:1`, "before"],
  [`${a}:1-5`, `${a}:1-5`, "same"],
  [`${a}:1-4`, `${a}:1-5`, "before"],
  [`${a}:1-5`, `${a}:1-5,${b}:1`, "before"],
  [`${a}:1-6`, `${a}:1-5,${b}:1`, "diverged"],
  [`${a}:1-3:5`, `${a}:1-5`, "before"],
  [`${a}:1-2:3-5`, `${a}:1-5`, "same"],
  [`${a}:5:1-4`, `${a}:1-5`, "same"],
  [`${a}:1-5,\n${b}:1-2`, `${b}:1-2,${a}:1-5`, "same"],
  [a.toUpperCase() + ":1-5", `${a}:1-5`, "same"],
  [`${a}:1-5:tag:1-2`, `${a}:1-5`, "after"],
  [`${a}:tag:1`, `${a}:1`, "diverged"],
  [`${a}:1-9223372036854775806`, `${a}:1-9223372036854775807`, "before"],
  ["somewhere", `${a}:1`, "before"],
])("%j is compared to %j", (one, another, order) => {
  expect(gtidPositions.compare(one, another)).toBe(order);
});

const transaction = fc.tuple(fc.constantFrom("p", "q"), fc.integer({ min: 1, max: 6 }));
const set = fc.array(transaction, { maxLength: 8 }).map((list) => list.map(([of, n]) => `${of}:${n}`).join(","));

test("sets compare as their single transactions do", () => {
  fc.assert(
    fc.property(set, set, (one, another) => {
      expect(gtidPositions.compare(one, another)).toBe(setPositions.compare(one, another));
    }),
  );
});
