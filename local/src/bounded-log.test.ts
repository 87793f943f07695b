import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openBoundedLog } from "./bounded-log.ts";

test("a log keeps its newest lines within its bound, over reopening too", () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-log-"));
  const path = join(directory, "x.log");
  for (const line of ["one\n", "two\n", "three\n", "four\n", "five\n", "six\n"]) {
    const log = openBoundedLog(path, { maxBytes: 10, keep: 2 });
    log.write(line);
    log.close();
  }
  expect(readdirSync(directory).sort()).toEqual(["x.log", "x.log.1", "x.log.2"]);
  const read = (name: string) => readFileSync(join(directory, name), "utf8");
  expect(read("x.log.2") + read("x.log.1") + read("x.log")).toBe("three\nfour\nfive\nsix\n");
});
