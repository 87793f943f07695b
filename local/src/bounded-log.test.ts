import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openBoundedLog } from "./bounded-log.ts";

test("a log retains its newest lines within its bound, also when it is reopened", () => {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-log-"));
  const path = join(directory, "x.log");
  for (const line of ["one\n", "two\n", "three\n", "four\n", "five\n", "six\n"]) {
    const log = openBoundedLog(path, { maxBytes: 10, filesMax: 2 });
    log.write(line);
    log.close();
  }
  expect(readdirSync(directory).sort()).toEqual(["x.log", "x.log.1", "x.log.2"]);
  const read = (name: string) => readFileSync(join(directory, name), "utf8");
  expect(read("x.log.2") + read("x.log.1") + read("x.log")).toBe("three\nfour\nfive\nsix\n");
});

// Only root may mount a file system of a small size.
test.skipIf(process.getuid?.() !== 0)("a log on a full disk drops text, and records how much", () => {
  const disk = mkdtempSync(join(tmpdir(), "holdfast-log-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k,mode=700", "small", disk]);
  try {
    const log = openBoundedLog(join(disk, "x.log"), { maxBytes: 20_000, filesMax: 2 });
    log.write("before\n");
    fill(join(disk, "filler"));
    // The rest of the file's page, and nothing more.
    log.write(`${"a".repeat(5_000)}\n`);
    log.write("b\n");
    // Too much for this file: it goes to the next one, for which there is no space either.
    log.write(`${"c".repeat(19_000)}\n`);
    rmSync(join(disk, "filler"));
    log.write("after\n");
    log.close();
    const dropped = 7 + 5_001 - 4_096 + 2 + 19_001;
    const content = readFileSync(`${log.path}.1`, "utf8") + readFileSync(log.path, "utf8");
    expect(content.replace(/a+/, (letters) => String(letters.length))).toBe(
      `before\n4089\n${dropped} bytes of log dropped: the disk was too slow or full\nafter\n`,
    );
  } finally {
    execFileSync("umount", [disk]);
    rmSync(disk, { recursive: true });
  }
});

/** Fills the file system completely. */
function fill(path: string): void {
  for (;;) {
    try {
      writeFileSync(path, Buffer.alloc(4_096), { flag: "a" });
    } catch {
      return;
    }
  }
}
