import { describe, expect, test } from "vitest";
import { emptyState } from "../journal/journal-state.ts";
import { createQuotaLeases, type QuotaLeaseRequest, type LeaseResult } from "./quota-leases.ts";

function quotaLeasesUnderTest() {
  const time = { now: 1_000_000 };
  const requests: QuotaLeaseRequest[] = [];
  const rates = new Map<string, number>();
  const leases = createQuotaLeases(emptyState(), {
    append: async () => undefined,
    now: () => time.now,
    rateOf: (keyId) => rates.get(keyId),
  });
  const connect = (amounts: Record<string, number> = {}) =>
    leases.connected(new Map(Object.entries(amounts)), (request) => requests.push(request));
  return { leases, time, requests, rates, connect };
}

const cost = "cost.o.2026-11";
const nextIteration = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("quota leases", () => {
  test("admit within the lease, and send one request of quota for all waiting calls", async () => {
    const { leases, requests, connect } = quotaLeasesUnderTest();
    connect({ [cost]: 10 });
    expect(leases.tryLease(cost, "o", 8)).toEqual({ kind: "taken" });
    const waiting = [leases.tryLease(cost, "o", 5), leases.tryLease(cost, "o", 4)] as Promise<LeaseResult>[];
    await nextIteration();
    expect(requests).toEqual([{ account: cost, organizationId: "o", need: 7, min: 4, reserved: 8 }]);
    leases.granted(cost, 3, 1);
    expect(await Promise.all(waiting)).toMatchObject([{ kind: "taken" }, { kind: "refused", remaining: 1 }]);
  });

  test("admit as many requests in any 60 s as the rate allows", () => {
    const { leases, time, rates, connect } = quotaLeasesUnderTest();
    rates.set("k", 2_000);
    connect({ "rpm.k": 5_000 });
    const start = time.now;
    const passed: number[] = [];
    for (; time.now < start + 200_000; time.now += 10) {
      if (leases.tryLease("rpm.k", "o", 1).constructor === Promise) throw new Error("it waits");
      const { remaining } = leases.rate("rpm.k");
      passed.push(remaining);
      if (remaining === 0) time.now += leases.rate("rpm.k").retryInMs;
    }
    // The rate is exhausted after 20 s, and again whenever the oldest request is 60 s old.
    expect(passed.indexOf(0)).toBe(1_999);
    expect(passed.filter((remaining) => remaining === 0).length).toBeGreaterThan(1);
  });

  test("repeat a refusal of the controllers for 100 ms, or until limits change", async () => {
    const { leases, requests, connect } = quotaLeasesUnderTest();
    connect();
    const first = leases.tryLease(cost, "o", 5);
    await nextIteration();
    leases.granted(cost, 0, 2);
    expect(await first).toMatchObject({ kind: "refused", remaining: 2 });
    expect(leases.tryLease(cost, "o", 5)).toMatchObject({ kind: "refused" });
    leases.configurationChanged();
    void leases.tryLease(cost, "o", 5);
    await nextIteration();
    expect(requests).toHaveLength(2);
  });

  test("admit a rate within the lease, and return only unused quota", () => {
    const { leases, time, connect } = quotaLeasesUnderTest();
    connect({ "rpm.k": 3 });
    const take = () => (leases.tryLease("rpm.k", "o", 1) as LeaseResult).kind;
    expect([take(), take()]).toEqual(["taken", "taken"]);
    time.now += 59_000;
    expect(leases.recalled("rpm.k", 5, false)).toEqual({ amount: 1, reserved: 0 });
    time.now += 999;
    leases.disconnected();
    expect(take()).toBe("unavailable");
    time.now += 1;
    expect([take(), take(), take()]).toEqual(["taken", "taken", "unavailable"]);
  });

  test("continue without controllers, and take over their leases on reconnection", () => {
    const { leases, connect } = quotaLeasesUnderTest();
    connect({ [cost]: 10 });
    leases.disconnected();
    expect(leases.tryLease(cost, "o", 10)).toEqual({ kind: "taken" });
    expect(leases.tryLease(cost, "o", 1)).toEqual({ kind: "unavailable" });
    connect({ [cost]: 12 });
    expect(leases.tryLease(cost, "o", 2)).toEqual({ kind: "taken" });
    leases.settle(cost, 10, 4);
    expect(leases.recalled(cost, 100, true)).toEqual({ amount: 6, reserved: 2 });
  });
});
