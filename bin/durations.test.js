import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { estimateSeconds, readDurations, recordDurations } from "./durations.js";

let directory;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-durations-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test("a machine without a recorded run has no durations, and records its first one", () => {
  const file = join(directory, "cache", "durations.json");
  expect(readDurations(file)).toEqual(new Map());
  recordDurations([{ path: "a.test.ts", seconds: 1.26 }], file);
  recordDurations([{ path: "b.test.ts", seconds: 20 }], file);
  expect([...readDurations(file)]).toEqual([
    ["b.test.ts", 20],
    ["a.test.ts", 1.3],
  ]);
  expect(readdirSync(join(directory, "cache"))).toEqual(["durations.json"]);
});

test("an unreadable record counts as none", () => {
  const file = join(directory, "durations.json");
  writeFileSync(file, '{"a.test.ts": 1');
  expect(readDurations(file)).toEqual(new Map());
});

test("a new file with a platform starts before a larger one without", () => {
  const paths = ["common/large.test.ts", "test/system/small.test.ts", "test/system/large.test.ts"];
  for (const path of paths) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), "x".repeat(path.includes("small") ? 5_000 : 20_000));
  }
  expect(paths.map((path) => estimateSeconds(path, directory))).toEqual([2, 50, 200]);
  expect(estimateSeconds("absent.test.ts", directory)).toBe(0);
});
