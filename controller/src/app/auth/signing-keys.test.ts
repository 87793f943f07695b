import { expect, test } from "vitest";
import type { SigningKeySpec } from "./auth.ts";
import {
  initialKeys,
  canRotate,
  newSigningKey,
  nextRetirement,
  replacedKeys,
  retireDue,
  rotatedKeys,
} from "./signing-keys.ts";

const seal = (plain: string) => `sealed ${plain.length}`;
const statuses = (keys: readonly SigningKeySpec[]) => keys.map(({ status }) => status);
const made = await Promise.all(Array.from({ length: 4 }, () => newSigningKey(seal)));
const [a, b, c, d] = made as [SigningKeySpec, SigningKeySpec, SigningKeySpec, SigningKeySpec];

test("a key is published as standby before it signs", () => {
  const first = initialKeys(a, b, 1_000);
  expect(statuses(first)).toEqual(["standby", "active"]);
  const second = rotatedKeys(first, c, 2_000);
  expect(second.map(({ kid, status }) => [kid, status])).toEqual([
    [c.kid, "standby"],
    [b.kid, "active"],
    [a.kid, "retiring"],
  ]);
  expect(second[2]?.sealedPrivateKey).toBe("");
  expect(second[1]?.activatedAt).toBe(2_000);
});

test("a retiring key stays published until it is retired", () => {
  const keys = rotatedKeys(initialKeys(a, b, 0), c, 0);
  const at = nextRetirement(keys) ?? 0;
  expect(at).toBe(24 * 3_600_000);
  expect(retireDue(keys, at - 1)).toBeUndefined();
  expect(statuses(retireDue(keys, at) ?? [])).toEqual(["standby", "active", "retired"]);
});

test("an emergency rotation retires every key, and the new active key was never published", () => {
  const keys = replacedKeys(rotatedKeys(initialKeys(a, b, 0), c, 0), d, a, 5);
  expect(statuses(keys)).toEqual(["standby", "active", "retired", "retired"]);
  expect(keys.map(({ kid }) => kid)).not.toContain(c.kid);
  expect(
    keys.filter(({ status }) => status === "retired").every(({ sealedPrivateKey }) => sealedPrivateKey === ""),
  ).toBe(true);
});

test("no more than eight keys retire at a time", () => {
  let keys = initialKeys(a, b, 0);
  for (let round = 0; round < 8; round += 1) {
    expect(canRotate(keys)).toBe(true);
    keys = rotatedKeys(keys, { ...c, kid: `k${round}` }, round);
  }
  expect(canRotate(keys)).toBe(false);
  expect(canRotate(replacedKeys(keys, c, d, 9))).toBe(true);
});

test("the oldest retired keys are dropped", () => {
  let keys = initialKeys(a, b, 0);
  for (let round = 0; round < 40; round += 1) keys = replacedKeys(keys, { ...c, kid: `k${round}` }, d, round);
  expect(keys.length).toBeLessThanOrEqual(12);
});
