import { expect, test } from "vitest";
import { isRewriteDue } from "./reclaim-space.ts";

const mib = 1024 ** 2;
const disk = 1_000;

/** A log with sizes in MiB, on an otherwise empty disk of 1,000 MiB. */
const log = (logMib: number, baseMib: number, freeMib = disk - logMib) => ({
  logBytes: logMib * mib,
  baseBytes: baseMib * mib,
  totalBytes: disk * mib,
  freeBytes: freeMib * mib,
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["a small log of small data",                                  log(100, 12), 12,  false],
  ["a log of an eighth of the disk, of small data",              log(130, 12), 12,  true],
  ["a log that the engine would let double for its last rewrite", log(400, 12), 12, true],
  ["the log of data that were all deleted",                      log(950, 900), 0,  true],
  ["a log that was just rewritten",                              log(420, 400), 400, false],
  ["a log of twice its data",                                    log(450, 200), 210, true],
  ["a log of large data, while both files fit",                  log(500, 400), 400, true],
  ["a log of large data that gain little yet",                   log(430, 400), 410, false],
  ["a log whose data no longer fit beside it",                   log(600, 400), 400, false],
  ["a log without free space for its data",                      log(500, 12, 5), 12, false],
  ["a base whose data were all deleted",                         log(900, 900), 0,   true],
  ["a small log on a disk that is full otherwise",               log(36, 1, 30), 1,  true],
  ["a small log of its data on a disk that is full otherwise",   log(36, 1, 50), 35, false],
])("%s", (_, onDisk, dataMib, due) => {
  expect(isRewriteDue(onDisk, dataMib * mib)).toBe(due);
});

/** Data of a constant size are overwritten until the disk is full, or a thousand rewrites were made. */
test.each([1, 10, 50, 100, 200, 300, 400, 440])(
  "never fills 95 of 100 parts of a disk of 1,000 MiB with data of %d",
  (dataMib) => {
    let [baseMib, grownMib, maxMib, rewrites] = [dataMib, 0, 0, 0];
    for (let step = 0; step < 20_000; step += 1) {
      grownMib += 1;
      const now = log(baseMib + grownMib, baseMib);
      maxMib = Math.max(maxMib, now.logBytes / mib);
      if (!isRewriteDue(now, dataMib * mib)) continue;
      rewrites += 1;
      // Both files exist until the rewrite ends.
      maxMib = Math.max(maxMib, now.logBytes / mib + dataMib);
      [baseMib, grownMib] = [dataMib, 0];
    }
    expect(maxMib).toBeLessThan(950);
    expect(rewrites).toBeGreaterThan(0);
  },
);
