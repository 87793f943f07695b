import { mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createReleaseLogs } from "./release-logs.ts";

let stateDir: string;

beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), "release-logs-"));
});
afterEach(() => rmSync(stateDir, { recursive: true }));

function write(name: string, bytes: number, atS: number): void {
  mkdirSync(join(stateDir, "log"), { recursive: true });
  const path = join(stateDir, "log", name);
  writeFileSync(path, "");
  truncateSync(path, bytes);
  utimesSync(path, atS, atS);
}

test("a machine without logs has none", () => {
  const logs = createReleaseLogs(stateDir);
  logs.prune([]);
  expect(logs.paths()).toEqual([]);
});

test("logs of former releases remain within 12 MiB over all of them, the newest ones first", () => {
  write("release-live.log.7", 90 << 20, 1);
  write("release-a.log.1", 4 << 20, 1);
  write("release-a.log.2", 4 << 20, 2);
  write("release-b.log.1", 6 << 20, 3);
  write("release-c.log.1", 1 << 20, 4);
  write("front.log.1", 40 << 20, 1);
  const logs = createReleaseLogs(stateDir);
  expect(logs.paths().map((path) => basename(path))).toEqual([
    "release-a.log",
    "release-b.log",
    "release-c.log",
    "release-live.log",
  ]);
  logs.prune(["live"]);
  expect(readdirSync(join(stateDir, "log")).sort()).toEqual([
    "front.log.1",
    "release-a.log.2",
    "release-b.log.1",
    "release-c.log.1",
    "release-live.log.7",
  ]);
});

test("at most 20 of them remain", () => {
  for (let number = 1; number <= 25; number += 1) write(`release-r-${number}.log.1`, 10, number);
  const logs = createReleaseLogs(stateDir);
  logs.prune(["r-1"]);
  expect(logs.paths()).toHaveLength(21);
  expect(logs.paths().map((path) => basename(path))).toContain("release-r-25.log");
  expect(logs.paths().map((path) => basename(path))).not.toContain("release-r-5.log");
});
