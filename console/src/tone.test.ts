import { expect, test } from "vitest";
import { pollMsOf, toneOf } from "./tone.ts";

test.each([
  ["Running", "good"],
  ["Provisioning", "busy"],
  ["a state of a later version", "none"],
])("%s is %s", (state, tone) => expect(toneOf(state)).toBe(tone));

test("a list is requested again soon while an entry is in progress", () => {
  expect(pollMsOf(["Running", "Provisioning"])).toBe(1_000);
  expect(pollMsOf(["Running"])).toBe(15_000);
  expect(pollMsOf(undefined)).toBe(15_000);
});
