import { beforeEach, expect, test } from "vitest";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import { createPrimaryLease, type PrimaryLease } from "./primary-lease.ts";

const spec = { serviceId: "s", term: 1n };
let nowMs: number;
let lease: PrimaryLease;

beforeEach(() => {
  nowMs = 100_000;
  lease = createPrimaryLease(() => nowMs);
  lease.bindTo(spec);
});

test("counts from the request, not from the response", () => {
  const number = lease.nextNumber(0);
  nowMs += 4_000;
  expect(lease.grantedUntil(number)).toBe(100_000 + primaryLeaseMs);
});

test("ignores a grant that arrives after its end", () => {
  const number = lease.nextNumber(0);
  nowMs += primaryLeaseMs;
  expect(lease.grantedUntil(number)).toBeUndefined();
});

test("ignores a grant of another term", () => {
  const number = lease.nextNumber(0);
  lease.bindTo({ ...spec, term: 2n });
  expect(lease.grantedUntil(number)).toBeUndefined();
});

test("starts a new term without a lease", () => {
  lease.extendedTo(nowMs + primaryLeaseMs);
  lease.bindTo({ ...spec, term: 2n });
  expect(lease.untilMs).toBe(0);
  expect(lease.isBoundTo(spec)).toBe(false);
});

test("numbers requests above those of earlier agents", () => {
  expect(lease.nextNumber(41)).toBe(42);
  expect(lease.nextNumber(41)).toBe(43);
});

test("measures the time since the last grant", () => {
  nowMs += 3_000;
  const number = lease.nextNumber(0);
  nowMs += 500;
  lease.grantedUntil(number);
  expect(lease.sinceGrantMs()).toBe(500);
});
