import { describe, expect, it } from "vitest";
import {
  type MachineKind,
  type ObservedWaiting,
  peakOf,
  planWaiting,
  type WaitingFacts,
  wantedOf,
} from "./waiting-plan.ts";

const pg: MachineKind = { engine: "postgresql", version: "17", zone: "local", storageTier: "maxiops" };
const valkey: MachineKind = { engine: "valkey", version: "8", zone: "local", storageTier: "maxiops" };

const one = (
  id: string,
  state: WaitingFacts["state"],
  kind = pg,
  image = "trixie-2",
  isSpared = true,
): WaitingFacts => ({
  id,
  kind,
  image,
  state,
  isSpared,
});
const observed = (machines: readonly WaitingFacts[], more: Partial<ObservedWaiting> = {}): ObservedWaiting => ({
  machines,
  wanted: [{ kind: pg, image: "trixie-2", count: 2, admitted: true }],
  busy: false,
  ...more,
});
const [a, b, c] = [one("a", "waiting"), one("b", "waiting"), one("c", "waiting")];
const both = [
  { kind: pg, image: "trixie-2", count: 1, admitted: true },
  { kind: valkey, image: "sid-2", count: 1, admitted: true },
];
const old = one("o", "waiting", pg, "trixie-1");
const unknown = [{ kind: pg, image: "", count: 2, admitted: true }];
const short = [{ kind: pg, image: "trixie-2", count: 2, admitted: false }];
const elsewhere = { ...pg, zone: "b" };
const twoZones = [...short, { kind: elsewhere, image: "trixie-2", count: 1, admitted: true }];
const shut = (id: string, state: WaitingFacts["state"]) => one(id, state, pg, "trixie-2", false);

describe("the plan of waiting machines", () => {
  // biome-ignore format: a table
  it.each([
    ["makes one when there is none",                     observed([]),                                       ["make postgresql"]],
    ["makes one when one is missing",                    observed([a]),                                      ["make postgresql"]],
    ["makes one at a time",                              observed([one("a", "making")]),                     []],
    ["makes none while others are waited for",           observed([], { busy: true }),                       []],
    ["rests when enough wait",                           observed([a, b]),                                   []],
    ["leaves the unfinished until it is known to be free", observed([one("x", "making"), a, b]),             []],
    ["removes what is too many even when busy",          observed([a, b, c], { busy: true }),                ["remove c"]],
    ["removes a kind that is not wanted",                observed([a, b, one("v", "waiting", valkey)]),      ["remove v"]],
    ["replaces one of an older image",                   observed([a, old]),                                 ["remove o", "make postgresql"]],
    ["keeps what waits while the newest image is not known", observed([a, old], { wanted: unknown }),        []],
    ["waits for one whose image is not chosen yet",      observed([a, one("x", "making", pg, "")]),          []],
    ["makes each kind that is wanted",                   observed([a], { wanted: both }),                    ["make valkey"]],
    ["removes all and makes none on a host that is short", observed([shut("a", "waiting"), shut("x", "making")], { wanted: short }), ["remove a"]],
    ["keeps what waits on a host that can spare it and no more", observed([a], { wanted: short }),           []],
    ["replaces on another host what waits on one that is short", observed([shut("a", "waiting")]),           ["remove a", "make postgresql"]],
    ["is not kept by one that is stuck on a host that is away", observed([shut("x", "making")]),             ["make postgresql"]],
    ["makes one in the zone that has room",              observed([], { wanted: twoZones }),                 ["make postgresql"]],
    ["gives up what failed and makes another",           observed([a, one("x", "failed")]),                  ["disown x", "make postgresql"]],
    ["never removes what holds an instance",             observed([a, b, one("u", "used")]),                 ["disown u"]],
    ["not even on a host that is short",                 observed([shut("u", "used")], { wanted: short }),  ["disown u"]],
  ] as const)("%s", (_, world, steps) => {
    const words = planWaiting(world).map((step) => `${step.kind} ${step.kind === "make" ? step.of.engine : step.machineId}`);
    expect(words).toEqual(steps);
  });
});

// biome-ignore format: a table
it.each([
  ["nothing",                     [],                                     0],
  ["one after the other",         [0, 100_000, 200_000],                  1],
  ["a burst",                     [0, 10, 20, 500_000],                   3],
  ["the larger of two bursts",    [0, 10, 500_000, 500_010, 500_020],     3],
  ["a burst over an hour ago",    [-5_000_000, -5_000_001, 500_000],      1],
])("remembers how many came at once: %s", (_, times, peak) => {
  expect(peakOf(times, 1_000_000)).toBe(peak);
});

// biome-ignore format: a table
it.each([
  ["the least without demand",         [],                                                       2, 20, ["postgresql 2"]],
  ["as many as came at once",          [{ kind: pg, peak: 7 }],                                  2, 20, ["postgresql 7"]],
  ["other kinds when they were asked for", [{ kind: valkey, peak: 3 }],                          2, 20, ["postgresql 2", "valkey 3"]],
  ["never more than the most in all",  [{ kind: pg, peak: 7 }, { kind: valkey, peak: 3 }],       2, 8,  ["postgresql 7", "valkey 1"]],
  ["nothing when none are to wait",    [{ kind: pg, peak: 7 }],                                  2, 0,  []],
] as const)("wants %s", (_, peaks, least, most, wanted) => {
  const words = wantedOf(peaks, [pg], { least, most }).map(({ kind, count }) => `${kind.engine} ${count}`);
  expect(words).toEqual(wanted);
});
