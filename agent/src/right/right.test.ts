import { beforeEach, expect, test } from "vitest";
import { rightMs } from "@holdfast/common/right.ts";
import { createRight, type Right } from "./right.ts";

const spec = { serviceId: "s", term: 1n };
let nowMs: number;
let right: Right;

beforeEach(() => {
  nowMs = 100_000;
  right = createRight(() => nowMs);
  right.holdFor(spec);
});

test("counts from when it was asked for, and not from the answer", () => {
  const number = right.nextNumber(0);
  nowMs += 4_000;
  expect(right.granted(number)).toBe(100_000 + rightMs);
});

test("takes no answer that comes when its right would be over", () => {
  const number = right.nextNumber(0);
  nowMs += rightMs;
  expect(right.granted(number)).toBeUndefined();
});

test("takes no answer to what was asked under another term", () => {
  const number = right.nextNumber(0);
  right.holdFor({ ...spec, term: 2n });
  expect(right.granted(number)).toBeUndefined();
});

test("begins a new term without any right", () => {
  right.extended(nowMs + rightMs);
  right.holdFor({ ...spec, term: 2n });
  expect(right.untilMs).toBe(0);
  expect(right.isFor(spec)).toBe(false);
});

test("numbers requests above all that the keeper has seen from agents before", () => {
  expect(right.nextNumber(41)).toBe(42);
  expect(right.nextNumber(41)).toBe(43);
});

test("tells for how long nobody granted anything", () => {
  nowMs += 3_000;
  const number = right.nextNumber(0);
  nowMs += 500;
  right.granted(number);
  expect(right.unansweredMs()).toBe(500);
});
