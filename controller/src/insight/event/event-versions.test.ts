import { expect, test, vi } from "vitest";
import { createEventVersions } from "./event-versions.ts";

test("one poll serves all followers and changes the versions of affected organizations only", async () => {
  vi.useFakeTimers();
  try {
    let looks = 0;
    const events: string[] = [];
    const news = createEventVersions({
      history: {
        async eventsAfter(behind, limit) {
          looks += 1;
          if (behind === undefined) return { newest: String(events.length), organizationIds: [] };
          const found = events.slice(Number(behind), Number(behind) + limit);
          return { newest: String(Number(behind) + found.length), organizationIds: found };
        },
      },
      clock: { now: Date.now, monotonicMs: Date.now },
    });
    // Before the first poll no version may count as unchanged.
    expect(news.version("a")).not.toBe(news.version("a"));
    await vi.advanceTimersByTimeAsync(500);
    const versions = () => ["a", "b"].map((id) => news.version(id));
    const before = versions();
    for (let n = 0; n < 1_000; n += 1) versions();
    await vi.advanceTimersByTimeAsync(400);
    expect(versions()).toEqual(before);
    expect(looks).toBe(2);
    events.push("a");
    await vi.advanceTimersByTimeAsync(400);
    const [a, b] = versions();
    expect([a === before[0], b === before[1]]).toEqual([false, true]);
    events.push(...Array.from({ length: 1_500 }, () => "a"));
    await vi.advanceTimersByTimeAsync(800);
    expect(versions()[1]).not.toBe(b);
    const done = looks;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(looks - done).toBeLessThan(20);
  } finally {
    vi.useRealTimers();
  }
});

test("every follower queries for itself while the history is unavailable", async () => {
  vi.useFakeTimers();
  try {
    const news = createEventVersions({
      history: { eventsAfter: () => Promise.reject(new Error("away")) },
      clock: { now: Date.now, monotonicMs: Date.now },
    });
    const first = news.version("a");
    await vi.advanceTimersByTimeAsync(500);
    expect(news.version("a")).not.toBe(first);
  } finally {
    vi.useRealTimers();
  }
});
