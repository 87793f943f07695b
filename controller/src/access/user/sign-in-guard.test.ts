import { expect, test } from "vitest";
import { createRecentSourcesInMemory } from "@holdfast/testing/controller/recent-sources-in-memory.ts";
import { createSignInGuard } from "./sign-in-guard.ts";

function guardAt() {
  const clock = { nowMs: 1_000_000, now: () => 0, monotonicMs: () => clock.nowMs };
  const guard = createSignInGuard(clock, { recentSources: createRecentSourcesInMemory() });
  /** Seconds to wait; 0 when the try was let through. */
  const attempt = (account: string, source: string): number => {
    try {
      guard.begin(account, source);
      return 0;
    } catch (error) {
      return (error as { retryAfterS: number }).retryAfterS;
    }
  };
  return { clock, guard, attempt };
}

test("each failure after the fifth doubles the delay, up to a minute", () => {
  const { clock, attempt } = guardAt();
  for (let i = 0; i < 5; i += 1) expect(attempt("anna", "10.0.0.1")).toBe(0);
  const waits: number[] = [];
  for (let i = 0; i < 8; i += 1) {
    const wait = attempt("anna", "10.0.0.1");
    waits.push(wait);
    clock.nowMs += wait * 1_000;
    expect(attempt("anna", "10.0.0.1")).toBe(0);
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
});

test("one source at many accounts is delayed, and an IPv6 source is its /64", () => {
  const { attempt } = guardAt();
  for (let i = 0; i < 40; i += 1) expect(attempt(`user-${i}`, `2001:db8::${i.toString(16)}`)).toBe(0);
  expect(attempt("another", "2001:db8:0:0:ffff::1")).toBe(1);
  expect(attempt("another", "2001:db8:0:1::1")).toBe(0);
});

test("distributed guesses do not lock out a user who has signed in before", () => {
  const { clock, guard, attempt } = guardAt();
  guard.begin("anna", "192.0.2.1").succeeded();
  for (let i = 0; i < 50; i += 1) expect(attempt("anna", `10.0.0.${i}`)).toBe(0);
  expect(attempt("anna", "10.0.1.1")).toBe(2);
  expect(attempt("anna", "192.0.2.1")).toBe(0);
  clock.nowMs += 2_000;
  expect(attempt("anna", "10.0.1.1")).toBe(0);
});

test("failures are forgotten after fifteen minutes without another", () => {
  const { clock, attempt } = guardAt();
  for (let i = 0; i < 5; i += 1) attempt("anna", "10.0.0.1");
  expect(attempt("anna", "10.0.0.1")).toBe(1);
  clock.nowMs += 16 * 60_000;
  for (let i = 0; i < 4; i += 1) expect(attempt("anna", "10.0.0.1")).toBe(0);
});

test("continuous attempts are limited to the hourly number in the docs", () => {
  const hourMs = 3_600_000;
  const triesIn = (attempts: (attempt: ReturnType<typeof guardAt>["attempt"], tick: number) => number[]): number => {
    const { clock, attempt } = guardAt();
    let tries = 0;
    for (let tick = 0; clock.nowMs < 1_000_000 + hourMs; tick += 1, clock.nowMs += 1_000)
      tries += attempts(attempt, tick).filter((wait) => wait === 0).length;
    return tries;
  };
  expect(triesIn((attempt) => Array.from({ length: 20 }, () => attempt("anna", "10.0.0.1")))).toBeLessThanOrEqual(75);
  // Every try from another source.
  const sources = (tick: number) => Array.from({ length: 20 }, (_, i) => `10.${tick >> 8}.${tick & 255}.${i}`);
  const everywhere = triesIn((attempt, tick) => sources(tick).map((source) => attempt("anna", source)));
  expect(everywhere).toBeLessThanOrEqual(1_850);
});

test("a successful sign-in does not reset the failures at other accounts", () => {
  const { clock, guard, attempt } = guardAt();
  guard.begin("mallory", "10.0.0.1").succeeded();
  for (let i = 0; i < 40; i += 1) expect(attempt(`user-${i}`, "10.0.0.1")).toBe(0);
  expect(attempt("user-40", "10.0.0.1")).toBe(1);
  guard.begin("mallory", "10.0.0.1").succeeded();
  expect(attempt("user-40", "10.0.0.1")).toBe(1);
  clock.nowMs += 1_000;
  expect(attempt("user-40", "10.0.0.1")).toBe(0);
  guard.begin("mallory", "10.0.0.1").succeeded();
  expect(attempt("user-41", "10.0.0.1")).toBe(2);
});

test("a /48 of IPv6 is sixteen sources and not 65,536", () => {
  const { attempt } = guardAt();
  const tried = Array.from({ length: 2_000 }, (_, i) => attempt(`user-${i}`, `2001:db8:1:${i.toString(16)}::1`));
  expect(tried.filter((wait) => wait === 0).length).toBe(640);
});
