import { beforeEach, expect, test } from "vitest";
import { createSilence, type Silence } from "./silence.ts";

let nowMs: number;
let silence: Silence;
beforeEach(() => {
  nowMs = 1_000;
  silence = createSilence({ monotonicMs: () => nowMs, longestRoundMs: 4_000 });
});

test("an engine without a response in checks of more than 5 seconds is silent for long", () => {
  nowMs += 3_000;
  silence.continue();
  nowMs += 2_000;
  expect(silence.isLong()).toBe(false);
  nowMs += 1;
  expect(silence.isLong()).toBe(true);
  silence.end();
  expect(silence.isLong()).toBe(false);
});

test("a pause of the process counts as one round, during and after its check", () => {
  nowMs += 15_000;
  expect(silence.isLong()).toBe(false);
  silence.continue();
  expect(silence.isLong()).toBe(false);
  nowMs += 500;
  silence.end();
  nowMs += 4_000;
  expect(silence.isLong()).toBe(false);
});

test("an engine that stays silent after a pause is silent for long", () => {
  nowMs += 15_000;
  silence.continue();
  nowMs += 1_001;
  expect(silence.isLong()).toBe(true);
});
