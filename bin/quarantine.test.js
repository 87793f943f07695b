import { expect, test } from "vitest";
import { checkQuarantine } from "./quarantine.js";
import { toolsFor } from "./tools.js";

const tools = toolsFor({ ...process.env, VITEST: undefined, VITEST_WORKER_ID: undefined, VITEST_POOL_ID: undefined });
const known = {
  file: "bin/quarantine.test.js",
  test: "names tests that exist, why and since when",
  since: "2026-11-24",
  reason: "an entry of this test",
};

test("names tests that exist, why and since when", async () => {
  await expect(checkQuarantine(tools, [known])).resolves.toBe(2);
  await expect(checkQuarantine(tools, [{ ...known, test: "of no name" }])).rejects.toThrow("do not exist");
  await expect(checkQuarantine(tools, [{ ...known, since: "lately" }])).rejects.toThrow("lately");
  await expect(checkQuarantine(tools, [{ ...known, reason: "" }])).rejects.toThrow("an entry has");
});

test("is short", async () => {
  await expect(
    checkQuarantine(
      tools,
      Array.from({ length: 11 }, () => known),
    ),
  ).rejects.toThrow("at most 10 are allowed");
});
