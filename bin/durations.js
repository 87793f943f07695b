// Durations of the test files at their last runs, in seconds. They are outside of git: a machine has its own, and two
// branches never conflict in them.
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cache, checkout } from "./set-up.js";

const recorded = join(cache, "test-durations.json");

/** Bytes of a test file for each second of its estimated duration. */
const bytesPerSecond = { platform: 100, other: 10_000 };

/** Seconds by path in the checkout; empty before the first run, and if the cache is unreadable. */
export function readDurations(file = recorded) {
  try {
    return new Map(Object.entries(JSON.parse(readFileSync(file, "utf8"))));
  } catch {
    return new Map();
  }
}

/** Adds the durations of the files that ran. Another run at the same time can win; its durations are as good. */
export function recordDurations(ran, file = recorded) {
  const durations = readDurations(file);
  for (const { path, seconds } of ran) durations.set(path, Math.round(seconds * 10) / 10);
  const sorted = [...durations].sort(([, a], [, b]) => b - a);
  const partial = `${file}.${process.pid}`;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(partial, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`);
  renameSync(partial, file);
}

/** Seconds of a file that has not run here yet: tests of the platform take longer than those of one package. */
export function estimateSeconds(path, root = checkout) {
  const { platform, other } = bytesPerSecond;
  const size = statSync(join(root, path), { throwIfNoEntry: false })?.size ?? 0;
  return size / (path.startsWith("test/") ? platform : other);
}
