import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { setPositions } from "@holdfast/testing/controller/set-positions.ts";
import { engineProfileOf } from "../../../../engine/engine-profiles.ts";
import type { LogPositions } from "../../../../engine/log-positions.ts";
import { isCaughtUp } from "../failover/failover-readiness.ts";
import { hasReplayedBeyond, isWithoutLag, lagOf, positionsOf } from "./log-position.ts";

const of = (databaseType: string) => positionsOf({ spec: { databaseType } } as never);
const [postgresql, valkey] = [of("postgresql"), of("valkey")];

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["of all that it has not replayed",        valkey,     "1000", "h", "900",  "h",   100n,  "before"],
  ["of nothing, when it is ahead",           valkey,     "1000", "h", "1001", "h",   0n,    "after"],
  ["of everything, with another history",    valkey,     "1000", "h", "5000", "old", 1000n, "before"],
  ["of a log with timelines",                postgresql, "0/20", "",  "0/10", "",    16n,   "before"],
])("a replica lacks the bytes %s", (_what, positions, position, history, replayedPosition, own, bytes, order) => {
  expect(lagOf(positions, { position, history }, { replayedPosition, history: own })).toEqual({ bytes, order });
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["one that replayed the last record",      "1001", "h",   "h", true],
  ["none that lacks it",                     "1000", "h",   "h", false],
  ["none with another history, however far", "9999", "old", "h", false],
  ["any, for an end without a history",      "1001", "h",   "",  true],
])("the end of a log is behind %s", (_what, replayedPosition, own, history, is) => {
  expect(hasReplayedBeyond(valkey, { replayedPosition, history: own }, { position: "1000", history })).toBe(is);
});

/** The comparison before engines had their own, by one number for all. */
function numberOf(text: string): bigint {
  if (/^\d{1,19}$/.test(text)) return BigInt(text);
  const found = /^([0-9A-Fa-f]{1,8})\/([0-9A-Fa-f]{1,8})$/.exec(text);
  return found === null ? 0n : (BigInt(`0x${found[1]}`) << 32n) | BigInt(`0x${found[2]}`);
}

const half = fc.oneof(fc.nat(3), fc.nat(0xff_ff_ff_ff)).map((value) => value.toString(16).toUpperCase());
const others = fc.constantFrom("", "somewhere", "0/", "/", "-1", "0/123456789", "1/2/3", "12345678901234567890");

describe.each([
  [
    "postgresql",
    fc.oneof(
      fc.tuple(half, half).map(([high, low]) => `${high}/${low}`),
      others,
    ),
  ],
  ["valkey", fc.oneof(fc.nat(9).map(String), fc.bigInt({ min: 0n, max: 10n ** 19n - 1n }).map(String), others)],
] as const)("positions of %s", (engine, position) => {
  const positions = of(engine);
  const { compare, bytesBetween } = positions;

  test("compare and subtract as one number did", () => {
    fc.assert(
      fc.property(position, position, fc.boolean(), (a, b, isSame) => {
        const ahead = numberOf(a) - numberOf(b);
        expect(bytesBetween?.(b, a)).toBe(ahead > 0n ? ahead : 0n);
        expect(compare(b, a)).toBe(ahead > 0n ? "before" : ahead < 0n ? "after" : "same");
        const replica = { replayedPosition: b, history: isSame ? "h" : "old" };
        const lacks = numberOf(a) - (isSame ? numberOf(b) : 0n);
        const lag = lagOf(positions, { position: a, history: "h" }, replica);
        expect(lag.bytes).toBe(lacks > 0n ? lacks : 0n);
        expect(isWithoutLag(lag)).toBe(lacks <= 0n);
        const isBeyond = isSame && numberOf(b) > numberOf(a);
        expect(hasReplayedBeyond(positions, replica, { position: a, history: "h" })).toBe(isBeyond);
      }),
      { numRuns: 2_000 },
    );
  });
});

const set = fc.subarray(["p:1", "p:2", "p:3", "q:1"]).map((transactions) => transactions.join(","));

test.each<[string, LogPositions, fc.Arbitrary<string>]>([
  ["bytes", valkey, fc.nat(5).map(String)],
  ["sets", setPositions, set],
  ["sets of MySQL", of("mysql"), set],
])("an order of %s has an inverse, and one position without data", (_, { compare }, position) => {
  const inverse = { before: "after", after: "before", same: "same", diverged: "diverged" };
  fc.assert(
    fc.property(position, position, (a, b) => {
      expect(compare(b, a)).toBe(inverse[compare(a, b)]);
      expect(compare(a, a)).toBe("same");
      expect(compare("", a)).toMatch(/^(before|same)$/);
    }),
  );
});

const upTo = (position: string) => ({ replayedPosition: position, history: "" });
const end = { position: "p:1-5", history: "" };

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["with less",                     "p:1-4",     { isBeyond: false, isCaughtUp: false }],
  ["with the same",                 "p:1-5",     { isBeyond: false, isCaughtUp: true }],
  ["with more of the primary",      "p:1-6",     { isBeyond: true,  isCaughtUp: true }],
  ["with a commit that the primary lacks",      "p:1-5,r:1", { isBeyond: true,  isCaughtUp: true }],
  ["that diverged",                 "p:1-4,r:1", { isBeyond: false, isCaughtUp: false }],
])("of an engine whose positions are sets, a replica %s", (_, position, expected) => {
  const lag = lagOf(setPositions, end, upTo(position));
  const is = { timeline: 0, history: "", streaming: true };
  expect(lag.bytes).toBeUndefined();
  expect({
    isBeyond: hasReplayedBeyond(setPositions, upTo(position), end),
    isCaughtUp: isCaughtUp(is, is, lag),
  }).toEqual(expected);
});

test("an engine that has replicas has positions", () => {
  expect(engineProfileOf("postgresql").replicas?.positions).toBe(postgresql);
});
