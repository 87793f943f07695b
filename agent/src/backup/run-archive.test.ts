import { expect, test } from "vitest";
import { createRandom } from "@holdfast/testing/random.ts";
import { createArchiveSchedule } from "./run-archive.ts";

const idleMs = 55_000;
const pollMs = 500;
const dayMs = 86_400_000;

/**
 * Simulates an archive whose engine writes this number of bytes per poll. Returns when each object was stored and since
 * when its first byte waited.
 */
function simulate(writes: (ms: number) => number, untilMs: number) {
  let now = 0;
  const schedule = createArchiveSchedule(idleMs, () => now);
  const objects: { readonly at: number; readonly oldest: number; readonly bytes: number }[] = [];
  let [bytes, oldest] = [0, 0];
  for (; now < untilMs; now += pollMs) {
    const written = writes(now);
    if (bytes === 0) oldest = now;
    bytes += written;
    if (bytes === 0 || now - oldest < schedule.delayMs(bytes)) continue;
    schedule.stored(bytes);
    objects.push({ at: now, oldest, bytes });
    bytes = 0;
  }
  return objects;
}

/** The platform's own commits. */
const idle = (ms: number) => (ms % 5_000 === 0 ? 130 : 0);

test("an idle engine stores one object per longest wait", () => {
  const objects = simulate(idle, dayMs);
  expect(objects.length).toBeGreaterThan(dayMs / (idleMs + 6_000));
  expect(objects.length).toBeLessThanOrEqual(dayMs / idleMs);
});

test.each([
  ["small", 400],
  ["large", 200_000],
])("the last write of a %s burst is stored within seconds, after any earlier activity", (_, each) => {
  const random = createRandom(each);
  for (let run = 0; run < 100; run += 1) {
    const from = Math.floor(random.next() * 600) * pollMs;
    const to = from + (4 + Math.floor(random.next() * 56)) * pollMs;
    const objects = simulate((ms) => idle(ms) + (ms >= from && ms < to ? each * 4 : 0), to + 60_000);
    const last = to - pollMs;
    const stored = objects.find(({ at }) => at >= last);
    expect((stored?.at ?? Number.POSITIVE_INFINITY) - last).toBeLessThanOrEqual(6_000);
  }
});

test("no write waits longer than the limit, and small objects are few", () => {
  const random = createRandom(7);
  const loads = [0, 50, 500, 5_000, 100_000];
  for (let run = 0; run < 100; run += 1) {
    const polls = Array.from({ length: 1 + Math.floor(random.next() * 20) }).flatMap(() => {
      const bytes = loads[Math.floor(random.next() * loads.length)] ?? 0;
      return Array.from({ length: 1 + Math.floor(random.next() * 400) }, () => bytes);
    });
    const untilMs = polls.length * pollMs;
    const objects = simulate((ms) => idle(ms) + (polls[ms / pollMs] ?? 0), untilMs);
    for (const { at, oldest } of objects) expect(at - oldest).toBeLessThanOrEqual(idleMs);
    const small = objects.filter(({ bytes }) => bytes < 64 << 10);
    expect(small.length).toBeLessThanOrEqual(untilMs / idleMs + 11);
  }
});
