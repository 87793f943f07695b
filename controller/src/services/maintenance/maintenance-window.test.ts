import { describe, expect, it, test } from "vitest";
import { defaultWindow, nextWindow, startInWindow, windowLengthMs } from "./maintenance-window.ts";

const hourMs = 3_600_000;
const at = (text: string) => Date.parse(text);
const iso = (time: number) => new Date(time).toISOString();
const sunday3 = { day: 6, hour: 3 };
const monday23 = { day: 0, hour: 23 };

describe("the default window", () => {
  const windows = Array.from({ length: 4_900 }, (_, i) => defaultWindow(`service-${i}`));

  it("is the same each time", () => {
    expect(defaultWindow("service-7")).toEqual(windows[7]);
  });

  it("is over by six in the morning", () => {
    for (const { hour } of windows) expect([22, 23, 0, 1, 2, 3, 4]).toContain(hour);
  });

  it("spreads a fleet over all nights", () => {
    const counts = new Map<string, number>();
    for (const { day, hour } of windows) counts.set(`${day} ${hour}`, (counts.get(`${day} ${hour}`) ?? 0) + 1);
    expect(counts.size).toBe(49);
    for (const count of counts.values()) expect(count).toBeGreaterThan(50);
  });
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  // window    now                       opens
  [sunday3,  "2026-11-21T21:00:00Z", "2026-11-22T03:00:00.000Z"],
  [sunday3,  "2026-11-22T03:00:00Z", "2026-11-22T03:00:00.000Z"],
  [sunday3,  "2026-11-22T04:59:59Z", "2026-11-22T03:00:00.000Z"],
  [sunday3,  "2026-11-22T05:00:00Z", "2026-11-29T03:00:00.000Z"],
  // Over midnight.
  [monday23, "2026-11-24T00:30:00Z", "2026-11-23T23:00:00.000Z"],
  [monday23, "2026-11-24T01:00:00Z", "2026-11-30T23:00:00.000Z"],
])("window %o at %s is that of %s", (window, now, opens) => {
  const { from, until } = nextWindow(window, at(now));
  expect(iso(from)).toBe(opens);
  expect(until - from).toBe(windowLengthMs);
});

describe("the start within a window", () => {
  const start = (notBefore: string, now: string, id = "service-1") =>
    startInWindow(sunday3, id, at(notBefore), at(now));
  const own = start("2026-11-16T00:00:00Z", "2026-11-16T00:00:00Z");

  it("is in its first hour, at a time that differs between services", () => {
    const starts = Array.from({ length: 200 }, (_, i) =>
      start("2026-11-16T00:00:00Z", "2026-11-16T00:00:00Z", `s${i}`),
    );
    const opens = at("2026-11-22T03:00:00Z");
    for (const time of starts) {
      expect(time).toBeGreaterThanOrEqual(opens);
      expect(time).toBeLessThan(opens + hourMs);
    }
    expect(new Set(starts).size).toBe(200);
  });

  // biome-ignore format: a table, aligned so that it reads as one
  it.each([
    ["a day's notice that ends before it", "2026-11-21T02:00:00Z", "2026-11-21T02:00:00Z", 0],
    ["a day's notice that ends after it",  "2026-11-22T04:00:01Z", "2026-11-21T21:00:00Z", 1],
    ["the window is open",                 "2026-11-16T00:00:00Z", "2026-11-22T04:29:59Z", 0],
    ["the window is about to close",       "2026-11-16T00:00:00Z", "2026-11-22T04:30:00Z", 1],
  ])("with %s it is in that week or the next", (_name, notBefore, now, weeks) => {
    expect(start(notBefore, now)).toBe(own + weeks * 168 * hourMs);
  });
});
