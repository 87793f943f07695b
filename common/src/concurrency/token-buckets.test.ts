import fc from "fast-check";
import { expect, test } from "vitest";
import { createTokenBuckets, takeTokens } from "./token-buckets.ts";

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

test("several buckets are charged together or not at all", () => {
  let ms = 0;
  const buckets = (burst: number) => createTokenBuckets({ burst, perSecond: 1 }, () => ms);
  const [own, shared] = [buckets(5), buckets(3)];
  const shares = (tokens: number) => [
    { buckets: own, name: "a", tokens, owner: "own" },
    { buckets: shared, name: "org", tokens, owner: "shared" },
  ];
  const first = takeTokens(shares(2));
  expect(first.exceeded).toBeUndefined();
  expect(takeTokens(shares(2))).toMatchObject({ exceeded: { owner: "shared" }, waitS: 1 });
  expect(own.take("a", 3).waitS).toBe(0);
  expect(takeTokens(shares(1))).toMatchObject({ exceeded: { owner: "own" }, waitS: 1 });
  ms = 1_000;
  const second = takeTokens(shares(1));
  if (second.exceeded === undefined) second.refund();
  expect(takeTokens(shares(1)).exceeded).toBeUndefined();
});

test("no sequence of requests takes more than the burst and the refill", () => {
  const request = fc.record({ tokens: fc.integer({ min: 1, max: 8 }), passMs: fc.nat(3_000) });
  fc.assert(
    fc.property(fc.array(request, { maxLength: 50 }), (requests) => {
      let ms = 0;
      let taken = 0;
      const buckets = createTokenBuckets({ burst: 10, perSecond: 2 }, () => ms);
      for (const { tokens, passMs } of requests) {
        const { waitS } = buckets.take("a", tokens);
        if (waitS === 0) taken += tokens;
        else {
          // The reported wait is enough, and no shorter one is.
          ms += waitS * 1_000 - 1;
          expect(buckets.admits("a", tokens)).toBe(false);
          ms += 1 + 1e-3;
          expect(buckets.admits("a", tokens)).toBe(true);
          taken += tokens;
        }
        expect(taken).toBeLessThanOrEqual(10 + (2 * ms) / 1_000 + 1e-6);
        ms += passMs;
      }
    }),
  );
});
