import { expect, test } from "vitest";
import { createTokenBuckets } from "./token-bucket.ts";

test("a bucket allows its burst, then its rate, and returns the wait", () => {
  let ms = 0;
  const buckets = createTokenBuckets({ burst: 10, perSecond: 2 }, () => ms);
  expect(buckets.take("a", 10)).toEqual({ remaining: 0, waitS: 0, fullInS: 5 });
  expect(buckets.take("a", 1)).toEqual({ remaining: 0, waitS: 0.5, fullInS: 5 });
  expect(buckets.admits("b", 1)).toBe(true);
  ms = 500;
  expect(buckets.admits("a", 1)).toBe(true);
  buckets.refund("a", 1);
  expect(buckets.admits("a", 1)).toBe(true);
  expect(buckets.admits("a", 11)).toBe(false);
});

test("invented names use bounded memory: full buckets are dropped first, then the oldest", () => {
  let ms = 0;
  const buckets = createTokenBuckets({ burst: 1, perSecond: 1 }, () => ms, 2);
  expect([buckets.admits("a", 1), buckets.admits("b", 1)]).toEqual([true, true]);
  // Both are in use: c replaces the older one, which is full when it returns.
  expect([buckets.admits("c", 1), buckets.admits("b", 1)]).toEqual([true, false]);
  ms = 1_000;
  // Both are full again and are dropped.
  expect([buckets.admits("d", 1), buckets.admits("d", 1)]).toEqual([true, false]);
});
