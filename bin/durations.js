// Durations of the longer test files at the last recording (`npm test -- --record`), in seconds.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkout } from "./set-up.js";

const file = join(checkout, "test", "durations.json");
/** Shorter files may run at any position. */
const worthS = 2;

/** Seconds by path in the checkout; a file that is not there is short, or new. */
export function readDurations() {
  return new Map(Object.entries(JSON.parse(readFileSync(file, "utf8"))));
}

/** Replaces the recorded durations of the files that ran. */
export function recordDurations(ran) {
  const durations = readDurations();
  for (const { path, seconds } of ran) {
    if (seconds < worthS) durations.delete(path);
    else durations.set(path, Math.round(seconds));
  }
  const sorted = [...durations].sort(([, a], [, b]) => b - a);
  writeFileSync(file, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
}
