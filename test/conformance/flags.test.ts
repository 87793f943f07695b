import { expect, test } from "vitest";
import { findIgnoredFlags } from "@holdfast/testing/cli/flag-walk.ts";

test("every flag, alone and beside each mode of its command, changes the effects or is refused", {
  timeout: 300_000,
}, async () => {
  expect(await findIgnoredFlags("modes")).toEqual([]);
});
