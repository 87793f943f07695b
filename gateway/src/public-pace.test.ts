import { createSourceGroups } from "@holdfast/common/source-groups.ts";
import { expect, test } from "vitest";
import { createPublicPace } from "./public-pace.ts";

function paceAt(perSecond: number, balancers: readonly string[] = []) {
  const clock = { nowMs: 0, now: () => 0, monotonicMs: () => clock.nowMs };
  return { clock, pace: createPublicPace({ perSecond, sources: createSourceGroups(balancers) }, clock) };
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

test("a source has ten seconds' worth at once and then its rate, others have theirs", () => {
  const { clock, pace } = paceAt(2);
  expect(taken(100, () => pace.take("192.0.2.1"))).toBe(20);
  expect(taken(1, () => pace.take("192.0.2.2"))).toBe(1);
  clock.nowMs = 1_000;
  expect(taken(100, () => pace.take("192.0.2.1"))).toBe(2);
});

test("a /48 of IPv6 has no more than sixteen sources", () => {
  const { pace } = paceAt(2);
  expect(taken(10_000, (n) => pace.take(`2001:db8:1:${((n * 256) % 65_536).toString(16)}::1`))).toBe(320);
});

test("many behind a balancer are not limited by its address", () => {
  const { pace } = paceAt(2, ["10.0.0.0/24"]);
  expect(taken(1_000, () => pace.take("10.0.0.9"))).toBe(1_000);
});

test("a source has sixteen streams, and gives each back once", () => {
  const { pace } = paceAt(0);
  const leave = pace.stream("192.0.2.1");
  expect(taken(100, () => pace.stream("192.0.2.1"))).toBe(15);
  leave();
  leave();
  expect(taken(100, () => pace.stream("192.0.2.1"))).toBe(1);
  expect(taken(100, () => pace.stream("192.0.2.3"))).toBe(16);
});
