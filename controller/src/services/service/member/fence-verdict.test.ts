import { knownWithinMs } from "#fleet/session/rights.ts";
import { expect, test } from "vitest";
import {
  type Candidate,
  fenceVerdict,
  fenceWithinMs,
  isLapsed,
  isToBeFenced,
  lapsedAfterMs,
  type RightWord,
} from "./fence-verdict.ts";
import { silentAfterMs } from "./suspicion.ts";
import type { MemberWord } from "./succession-verdict.ts";

const silent: MemberWord = { answers: false, isHeld: false, engine: "unknown" };
const ended: MemberWord = { answers: true, isHeld: true, engine: "cutOff" };
const late = knownWithinMs + lapsedAfterMs;

const right = (change: Partial<RightWord> = {}): RightWord => ({
  revokedForMs: 0,
  ungrantedForMs: undefined,
  ...change,
});

const candidate = (nodeId: string, change: Partial<Candidate> = {}): Candidate => ({
  nodeId,
  timeline: 1,
  position: 100n,
  quietMs: lapsedAfterMs,
  streaming: false,
  ...change,
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["not at once",                                           right(), false],
  ["not while another controller may have granted since",   right({ revokedForMs: late - 1 }), false],
  ["once nobody can have granted any that lasts",           right({ revokedForMs: late }), true],
  ["not while the last one of all may last",                right({ ungrantedForMs: lapsedAfterMs - 1 }), false],
  ["once the last one of all is over",                      right({ ungrantedForMs: lapsedAfterMs }), true],
] as const)("a right has lapsed %s", (_, word, lapsed) => {
  expect(isLapsed(word)).toBe(lapsed);
});

const both = ["b", "c"];

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["waits for all that may have a commit alone",  [candidate("b")],                                                 both,  { kind: "wait" }],
  ["names the one that has all of them",          [candidate("b"), candidate("c", { position: 99n })],              both,  { kind: "name", nodeId: "b" }],
  ["names nobody that lacks one",                 [candidate("b"), candidate("c", { position: 101n, isOther: true })], both, { kind: "wait" }],
  ["names nobody where commits waited for nobody", [candidate("b")],                                                [],    { kind: "wait" }],
] as const)("a fence of a service whose commits wait %s", (_, candidates, needed, verdict) => {
  expect(fenceVerdict(ended, right(), candidates, needed)).toEqual(verdict);
});

const uncounted = [candidate("b", { isUncounted: true })];

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["as long as the old primary may take writes", silent, right({ ungrantedForMs: lapsedAfterMs }),               { kind: "wait" }],
  ["no more once its agent says that it ended",  ended,  right(),                                                { kind: "name", nodeId: "b" }],
  ["no more once its host says so",              silent, right({ ungrantedForMs: 0, isProven: true }),           { kind: "name", nodeId: "b" }],
] as const)("a voucher that a restarted agent does not count is passed over %s", (_, from, word, verdict) => {
  expect(fenceVerdict(from, word, uncounted)).toEqual(verdict);
});

test("the host's word comes in place of time, and is asked for once nobody grants a right any more", () => {
  expect(fenceVerdict(silent, right({ isProven: true }), [candidate("b", { quietMs: 0 })])).toEqual({
    kind: "name",
    nodeId: "b",
  });
  expect(isLapsed(right({ revokedForMs: late, ungrantedForMs: late, neverLapses: true }))).toBe(false);
  expect(isToBeFenced(right(), 60_000)).toBe(false);
  expect(isToBeFenced(right({ ungrantedForMs: 0 }), silentAfterMs)).toBe(true);
  expect(isToBeFenced(right({ ungrantedForMs: 0, revokedForMs: 1_000 }), 1_500)).toBe(false);
  expect(isToBeFenced(right({ ungrantedForMs: 0, revokedForMs: 2_000 }), 2_500)).toBe(true);
});

const behind = [candidate("b", { timeline: 2 }), candidate("c", { position: 9n })];
const other = [candidate("b"), candidate("c", { isOther: true })];
const wroteOn: MemberWord = { answers: true, isHeld: true, engine: "writes" };

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["names the chosen one, however far another",               silent,  right({ revokedForMs: late }),         behind, { kind: "name", nodeId: "c" }],
  ["waits for the right to lapse",                            silent,  right({ revokedForMs: late - 1 }),     behind, { kind: "wait" }],
  ["waits while it may have confirmed the right",             silent,  right({ revokedForMs: late }),         [candidate("c", { quietMs: lapsedAfterMs - 1 })], { kind: "wait" }],
  ["waits where others confirm the right",                    silent,  right({ revokedForMs: late }),         other,  { kind: "wait" }],
  ["waits while the engine writes",                           wroteOn, right(),                               other,  { kind: "wait" }],
  ["names one that confirms nothing once the engine is over", ended,   right(),                               other,  { kind: "name", nodeId: "c" }],
  ["names nobody else",                                       ended,   right(),                               [candidate("b")], { kind: "wait" }],
  ["goes back where the chosen one does not answer",          ended,   right({ revokedForMs: fenceWithinMs }), [candidate("b")], { kind: "goBack" }],
] as const)("a forced fence %s", (_, from, word, candidates, verdict) => {
  expect(fenceVerdict(from, word, candidates, both, "c")).toEqual(verdict);
});

const over = right({ revokedForMs: late });
const stuck = right({ revokedForMs: fenceWithinMs });
const wait = { kind: "wait" };
const goBack = { kind: "goBack" };
const b = { kind: "name", nodeId: "b" };

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["waits for the right to lapse",                          silent, right(), [candidate("b")],                                                     wait],
  ["names a replica then",                                  silent, over,    [candidate("b")],                                                     b],
  ["names one at once when the engine is known to be over", ended,  right(), [candidate("b", { quietMs: 0 })],                                     b],
  ["waits while a replica may have confirmed the right",    silent, over,    [candidate("b", { quietMs: lapsedAfterMs - 1 })],                     wait],
  ["names the furthest",                                    silent, over,    [candidate("c", { position: 99n }), candidate("b")],                  b],
  ["names one of the newest timeline, however far another", silent, over,    [candidate("c", { position: 999n }), candidate("b", { timeline: 2 })], b],
  ["names none that is behind one that is not quiet yet",   silent, over,    [candidate("c"), candidate("b", { position: 101n, quietMs: 0 })],     wait],
  ["names none of two of which nobody knows who is behind", silent, over,    [candidate("b", { history: "new" }), candidate("c", { history: "old" })], wait],
  ["names the only one, whatever its history",              silent, over,    [candidate("b", { history: "old" })],                                 b],
  ["waits for a replica, however long, while nobody is there", silent, stuck, [],                                                                  wait],
  ["goes back to a primary that has ended, without replicas", ended, stuck,  [],                                                                   goBack],
  ["goes back to a primary that is received all the time",  silent, stuck,   [candidate("b", { quietMs: 0, streaming: true })],                    goBack],
] as const)("a fence %s", (_, from, word, candidates, verdict) => {
  expect(fenceVerdict(from, word, candidates)).toEqual(verdict);
});
