import { cacheMaxAgeMs } from "#fleet/session/primary-leases.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Candidate,
  candidateOf,
  fenceVerdict,
  fenceTimeoutMs,
  isLeaseExpired,
  shouldFence,
  leaseExpiredAfterMs,
  type LeaseState,
} from "./fence-verdict.ts";
import { setPositions } from "@holdfast/testing/controller/set-positions.ts";
import { bytePositions } from "../../../../engine/log-positions.ts";
import { silentAfterMs } from "./suspicion.ts";
import type { MemberState } from "../primary-change-plan.ts";

const silent: MemberState = { isConnected: false, hasNewestSettings: false, engine: "unknown" };
const ended: MemberState = { isConnected: true, hasNewestSettings: true, engine: "cutOff" };
const positions = bytePositions(BigInt);
const late = cacheMaxAgeMs + leaseExpiredAfterMs;

const lease = (change: Partial<LeaseState> = {}): LeaseState => ({
  revokedForMs: 0,
  ungrantedForMs: undefined,
  ...change,
});

const candidate = (nodeId: string, change: Partial<Candidate> = {}): Candidate => ({
  nodeId,
  timeline: 1,
  position: "100",
  unchangedMs: leaseExpiredAfterMs,
  streaming: false,
  ...change,
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["not immediately",                                           lease(), false],
  ["not while another controller may have granted since",   lease({ revokedForMs: late - 1 }), false],
  ["once no controller can have granted a valid one",       lease({ revokedForMs: late }), true],
  ["not while the last one of all may last",                lease({ ungrantedForMs: leaseExpiredAfterMs - 1 }), false],
  ["once the last one of all is over",                      lease({ ungrantedForMs: leaseExpiredAfterMs }), true],
] as const)("a lease has expired %s", (_, lease, lapsed) => {
  expect(isLeaseExpired(lease)).toBe(lapsed);
});

const both = ["b", "c"];

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["waits for all that may have a commit alone",  [candidate("b")],                                                 both,  { kind: "wait" }],
  ["names the one that has all of them",          [candidate("b"), candidate("c", { position: "99" })],              both,  { kind: "name", nodeId: "b" }],
  ["names none that lacks one",                   [candidate("b"), candidate("c", { position: "101", comparisonOnly: true })], both, { kind: "wait" }],
  ["names none while commits do not wait",         [candidate("b")],                                                [],    { kind: "wait" }],
] as const)("a fence of a service whose commits wait %s", (_, candidates, needed, verdict) => {
  expect(fenceVerdict(ended, lease(), candidates, positions, needed)).toEqual(verdict);
});

const uncounted = [candidate("b", { isNotCounted: true })];

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["as long as the old primary may take writes", silent, lease({ ungrantedForMs: leaseExpiredAfterMs }),               { kind: "wait" }],
  ["no more once its agent reports its end",     ended,  lease(),                                                { kind: "name", nodeId: "b" }],
  ["no more once its host reports its end",      silent, lease({ ungrantedForMs: 0, isProven: true }),           { kind: "name", nodeId: "b" }],
] as const)("a candidate that a restarted agent does not count is skipped %s", (_, from, lease, verdict) => {
  expect(fenceVerdict(from, lease, uncounted, positions)).toEqual(verdict);
});

const response = {
  nodeId: "b",
  timeline: 1,
  history: "",
  position: "100",
  streaming: false,
  unchangedMs: BigInt(leaseExpiredAfterMs),
};

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["a failover candidate that the old primary counts is named",  ["b"], ["b"], { kind: "name", nodeId: "b" }],
  ["one that the old primary may not count is skipped",          ["b"], [],    { kind: "wait" }],
  ["a replica that is no failover candidate is compared alone",  [],    [],    { kind: "wait" }],
] as const)("after the lease has expired, %s", (_, failoverCandidates, counted, verdict) => {
  const replica = candidateOf(response, failoverCandidates, counted);
  expect(replica).toMatchObject({ nodeId: "b", position: "100", unchangedMs: leaseExpiredAfterMs });
  expect(fenceVerdict(silent, lease({ ungrantedForMs: leaseExpiredAfterMs }), [replica], positions)).toEqual(verdict);
});

test("the confirmation of the host replaces time, and is requested once no controller grants a lease", () => {
  expect(fenceVerdict(silent, lease({ isProven: true }), [candidate("b", { unchangedMs: 0 })], positions)).toEqual({
    kind: "name",
    nodeId: "b",
  });
  expect(isLeaseExpired(lease({ revokedForMs: late, ungrantedForMs: late, neverExpires: true }))).toBe(false);
  expect(shouldFence(lease(), 60_000)).toBe(false);
  expect(shouldFence(lease({ ungrantedForMs: 0 }), silentAfterMs)).toBe(true);
  expect(shouldFence(lease({ ungrantedForMs: 0, revokedForMs: 1_000 }), 1_500)).toBe(false);
  expect(shouldFence(lease({ ungrantedForMs: 0, revokedForMs: 2_000 }), 2_500)).toBe(true);
});

const behind = [candidate("b", { timeline: 2 }), candidate("c", { position: "9" })];
const another = [candidate("b"), candidate("c", { comparisonOnly: true })];
const wroteOn: MemberState = { isConnected: true, hasNewestSettings: true, engine: "writes" };

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["names the chosen one, however far another",               silent,  lease({ revokedForMs: late }),         behind, { kind: "name", nodeId: "c" }],
  ["waits for the lease to expire",                           silent,  lease({ revokedForMs: late - 1 }),     behind, { kind: "wait" }],
  ["waits while it may have confirmed the lease",             silent,  lease({ revokedForMs: late }),         [candidate("c", { unchangedMs: leaseExpiredAfterMs - 1 })], { kind: "wait" }],
  ["waits while others confirm the lease",                    silent,  lease({ revokedForMs: late }),         another,  { kind: "wait" }],
  ["waits while the engine writes",                           wroteOn, lease(),                               another,  { kind: "wait" }],
  ["names one that confirms nothing after the engine ended",  ended,   lease(),                               another,  { kind: "name", nodeId: "c" }],
  ["names no other one",                                      ended,   lease(),                               [candidate("b")], { kind: "wait" }],
  ["goes back where the chosen one does not answer",          ended,   lease({ revokedForMs: fenceTimeoutMs }), [candidate("b")], { kind: "revert" }],
] as const)("a forced fence %s", (_, from, lease, candidates, verdict) => {
  expect(fenceVerdict(from, lease, candidates, positions, both, "c")).toEqual(verdict);
});

const over = lease({ revokedForMs: late });
const stuck = lease({ revokedForMs: fenceTimeoutMs });
const wait = { kind: "wait" };
const revert = { kind: "revert" };
const b = { kind: "name", nodeId: "b" };

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["waits for the lease to expire",                         silent, lease(), [candidate("b")],                                                     wait],
  ["names a replica then",                                  silent, over,    [candidate("b")],                                                     b],
  ["names one immediately when the engine has ended", ended,  lease(), [candidate("b", { unchangedMs: 0 })],                                     b],
  ["waits while a replica may have confirmed the lease",    silent, over,    [candidate("b", { unchangedMs: leaseExpiredAfterMs - 1 })],                     wait],
  ["names the furthest",                                    silent, over,    [candidate("c", { position: "99" }), candidate("b")],                  b],
  ["names one of the newest timeline, however far another", silent, over,    [candidate("c", { position: "999" }), candidate("b", { timeline: 2 })], b],
  ["names none that is behind one that still receives",     silent, over,    [candidate("c"), candidate("b", { position: "101", unchangedMs: 0 })],     wait],
  ["names none of two that cannot be compared",             silent, over,    [candidate("b", { history: "new" }), candidate("c", { history: "old" })], wait],
  ["names the only one, with any history",                  silent, over,    [candidate("b", { history: "old" })],                                 b],
  ["waits for a replica without a deadline while none responds", silent, stuck, [],                                                                  wait],
  ["goes back to a primary that has ended, without replicas", ended, stuck,  [],                                                                   revert],
  ["goes back to a primary that is received all the time",  silent, stuck,   [candidate("b", { unchangedMs: 0, streaming: true })],                    revert],
] as const)("a fence %s", (_, from, lease, candidates, verdict) => {
  expect(fenceVerdict(from, lease, candidates, positions)).toEqual(verdict);
});

const at = (nodeId: string, position: string, change: Partial<Candidate> = {}) =>
  candidate(nodeId, { position, ...change });

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["names none of two that each have a commit alone",       [at("b", "p:1-5,b:1"), at("c", "p:1-6")],                                   wait],
  ["names the one that has the commits of both",            [at("b", "p:1-5,b:1"), at("c", "p:1-6"), at("d", "p:1-6,b:1")],             { kind: "name", nodeId: "d" }],
  ["names none that lacks a commit of a compared replica",  [at("b", "p:1-6"), at("c", "p:1-4,c:1", { comparisonOnly: true })],         wait],
  ["names one of equals",                                   [at("b", "p:1-6,x:1"), at("c", "x:1,p:1-6")],                               b],
])("a fence of an engine with partially ordered positions %s", (_, candidates, verdict) => {
  expect(fenceVerdict(silent, over, candidates, setPositions)).toEqual(verdict);
});

test("an operator may choose one of two replicas that each have a commit alone", () => {
  const candidates = [at("b", "p:1-5,b:1"), at("c", "p:1-6")];
  expect(fenceVerdict(ended, lease(), candidates, setPositions, undefined, "c")).toEqual({ kind: "name", nodeId: "c" });
});

test("no replica is named while any other has a transaction that it lacks", () => {
  const transactions = fc.subarray(["p:1", "p:2", "p:3", "x:1", "y:1"]);
  const replica = fc.record({ has: transactions, comparisonOnly: fc.boolean() });
  let named = 0;
  fc.assert(
    fc.property(fc.array(replica, { minLength: 1, maxLength: 4 }), (replicas) => {
      const candidates = replicas.map(({ has, comparisonOnly }, index) =>
        at(String(index), has.join(","), { comparisonOnly }),
      );
      const verdict = fenceVerdict(silent, over, candidates, setPositions);
      const hasAll = (own: readonly string[]) => replicas.every(({ has }) => has.every((each) => own.includes(each)));
      const eligible = replicas.filter(({ has, comparisonOnly }) => !comparisonOnly && hasAll(has));
      expect(verdict.kind).toBe(eligible.length > 0 ? "name" : "wait");
      if (verdict.kind !== "name") return;
      named += 1;
      expect(hasAll(replicas[Number(verdict.nodeId)]?.has ?? [])).toBe(true);
    }),
    { numRuns: 500 },
  );
  expect(named).toBeGreaterThan(20);
});
