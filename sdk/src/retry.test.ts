import { describe, expect, test } from "vitest";
import { ConnectionFailed, errorOf, type Problem } from "./errors.ts";
import { pause, pauseBeforeRetry, defaultRetries, retryAfterMsOf } from "./retry.ts";

const failed = (status: number, retryAfterMs?: number) =>
  errorOf(
    { type: "", title: "", status, detail: "", instance: "", code: "", errors: [] } satisfies Problem,
    retryAfterMs,
  );

describe("retries", () => {
  // Error, number of the failed attempt, random number, pause.
  const cases: [unknown, number, number, number | undefined][] = [
    [new ConnectionFailed("x"), 1, 0, 100],
    [new ConnectionFailed("x"), 1, 0.5, 200],
    [new ConnectionFailed("x"), 3, 0.5, 800],
    [new ConnectionFailed("x"), 4, 0.5, undefined],
    [failed(503), 2, 0.5, 400],
    [failed(502), 1, 0.5, 200],
    [failed(504), 1, 0.5, 200],
    [failed(429, 3_000), 1, 0.5, 3_000],
    [failed(503, 10), 1, 0.5, 200],
    [failed(429, 30_001), 1, 0.5, undefined],
    [failed(500), 1, 0.5, undefined],
    [failed(409), 1, 0.5, undefined],
    [new Error("of the caller"), 1, 0.5, undefined],
  ];
  test.each(cases)("%s after attempt %i, random %d: %s", (error, attempt, random, pauseMs) => {
    expect(pauseBeforeRetry(error, attempt, defaultRetries, random)).toBe(pauseMs);
  });

  test("Retry-After is seconds or a date", () => {
    const now = Date.parse("2026-03-01T12:00:00Z");
    expect(retryAfterMsOf("7", now)).toBe(7_000);
    expect(retryAfterMsOf("Sun, 01 Mar 2026 12:00:05 GMT", now)).toBe(5_000);
    expect(retryAfterMsOf("Sun, 01 Mar 2026 11:00:00 GMT", now)).toBe(0);
    for (const none of [null, "soon", "-1x"]) expect(retryAfterMsOf(none, now)).toBeUndefined();
  });

  test("a pause ends with its signal's reason", async () => {
    const reason = new Error("enough");
    // Time: the length of a pause, which its signal ends.
    await expect(pause(60_000, AbortSignal.abort(reason))).rejects.toBe(reason);
    const controller = new AbortController();
    // Time: the length of a pause, which its signal ends.
    const waiting = pause(60_000, controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });
});
