import { expect, test } from "vitest";
import { createRateLimit } from "./rate-limit.ts";

const principal = (id: string) =>
  ({ kind: "api_key", id, name: id, organizationId: "o", scopes: new Set<string>() }) as const;

test("a credential has so many requests in a window, and is told how many are left", () => {
  let now = 0;
  const limit = createRateLimit({ requests: 2, windowMs: 10_000 }, { now: () => 0, monotonicMs: () => now });
  const headers: Record<string, string> = {};
  const take = (id: string) => limit.take(principal(id), (name, value) => (headers[name] = value));
  take("a");
  expect(headers).toEqual({ "ratelimit-limit": "2", "ratelimit-remaining": "1", "ratelimit-reset": "10" });
  take("a");
  now = 4_000;
  expect(() => take("a")).toThrow(expect.objectContaining({ key: "RATE_LIMITED", retryAfterS: 6 }));
  take("b");
  now = 10_000;
  take("a");
  expect(headers["ratelimit-remaining"]).toBe("1");
});

test("zero is no limit", () => {
  const limit = createRateLimit({ requests: 0, windowMs: 1_000 }, { now: () => 0, monotonicMs: () => 0 });
  limit.take(principal("a"), () => expect.unreachable());
});
