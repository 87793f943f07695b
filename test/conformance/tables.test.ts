import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { printLists } from "@holdfast/testing/cli/flag-walk.ts";

beforeAll(() => vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2030-01-31T12:05:00Z") }));
afterAll(() => vi.useRealTimers());

test("every list fits a terminal of 80 columns, without a cut id", async () => {
  const printed = await printLists(80);
  expect(printed.length).toBeGreaterThan(40);
  const lines = printed.flatMap(([, output]) => output.split("\n"));
  expect(lines.filter((line) => /[0-9a-f]{4}…/.test(line))).toEqual([]);
  const text = printed.map(([line, output]) => `$ holdfast ${line}\n${output}`).join("\n");
  await expect(text).toMatchFileSnapshot("tables-80.txt");
});
