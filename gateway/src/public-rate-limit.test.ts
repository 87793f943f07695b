import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { expect, test } from "vitest";
import { createPublicRateLimit } from "./public-rate-limit.ts";

function limitAt(perSecond: number, balancers: readonly string[] = []) {
  const clock = { nowMs: 0, now: () => 0, monotonicMs: () => clock.nowMs };
  return { clock, limit: createPublicRateLimit({ perSecond, sources: createSourceGroups(balancers) }, clock) };
}

const taken = (times: number, take: (n: number) => void): number => {
  for (let n = 0; n < times; n += 1) {
    try {
      take(n);
    } catch {
      return n;
    }
  }
  return times;
};

test("a source has a burst of ten seconds' worth, then its rate, apart from other sources", () => {
  const { clock, limit } = limitAt(2);
  expect(taken(100, () => limit.take("192.0.2.1"))).toBe(20);
  expect(taken(1, () => limit.take("192.0.2.2"))).toBe(1);
  clock.nowMs = 1_000;
  expect(taken(100, () => limit.take("192.0.2.1"))).toBe(2);
});

test("a /48 of IPv6 has the rate of sixteen sources", () => {
  const { limit } = limitAt(2);
  expect(taken(10_000, (n) => limit.take(`2001:db8:1:${((n * 256) % 65_536).toString(16)}::1`))).toBe(320);
});

test("clients behind a load balancer are not limited by its address", () => {
  const { limit } = limitAt(2, ["10.0.0.0/24"]);
  expect(taken(1_000, () => limit.take("10.0.0.9"))).toBe(1_000);
});

test("a source has sixteen streams, and closing one twice frees one", () => {
  const { limit } = limitAt(0);
  const close = limit.stream("192.0.2.1");
  expect(taken(100, () => limit.stream("192.0.2.1"))).toBe(15);
  close();
  close();
  expect(taken(100, () => limit.stream("192.0.2.1"))).toBe(1);
  expect(taken(100, () => limit.stream("192.0.2.3"))).toBe(16);
});
