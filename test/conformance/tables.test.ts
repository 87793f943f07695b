import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { printLists } from "@holdfast/testing/cli/flag-walk.ts";

/** The folder of the expected lists, a file for each noun. */
const expected = join(import.meta.dirname, "tables-80");
const howToUpdate =
  "the lists of a noun differ from its file in test/conformance/tables-80: if they are right, run" +
  " npx vitest run test/conformance/tables.test.ts -u";

let printed: [line: string, output: string][];
beforeAll(async () => {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2030-01-31T12:05:00Z") });
  printed = await printLists(80);
});
afterAll(() => vi.useRealTimers());

/** Name of the file: the noun, such as `services`, or `admin-keys` for a noun of operators. */
function fileOf(line: string): string {
  const [noun = "", second = ""] = line.split(" ");
  return `${noun === "admin" ? `${noun}-${second}` : noun}.txt`;
}

describe("every list", () => {
  test("fits a terminal of 80 columns, without a cut id", () => {
    expect(printed.length).toBeGreaterThan(40);
    const lines = printed.flatMap(([, output]) => output.split("\n"));
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    expect(lines.filter((line) => /[0-9a-f]{4}…/.test(line))).toEqual([]);
  });

  test("prints what the file of its noun has", async () => {
    for (const [file, lists] of Map.groupBy(printed, ([line]) => fileOf(line))) {
      const text = lists.map(([line, output]) => `$ holdfast ${line}\n${output}`).join("\n");
      await expect(text, howToUpdate).toMatchFileSnapshot(join(expected, file));
    }
  });

  test("is in one of the files, and no other file is left", () => {
    const files = new Set(printed.map(([line]) => fileOf(line)));
    expect(readdirSync(expected).filter((file) => !files.has(file))).toEqual([]);
  });
});
