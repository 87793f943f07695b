import { describe, expect, it } from "vitest";
import {
  type PoolKind,
  type ObservedPool,
  peakOf,
  planWarmPool,
  type PooledMachine,
  targetsOf,
} from "./warm-pool-plan.ts";

const pg: PoolKind = { software: { name: "postgresql", version: "17" }, zone: "local", storageTier: "maxiops" };
const valkey: PoolKind = { software: { name: "valkey", version: "8" }, zone: "local", storageTier: "maxiops" };

const one = (
  id: string,
  state: PooledMachine["state"],
  kind = pg,
  image = "trixie-2",
  isSpared = true,
): PooledMachine => ({
  id,
  kind,
  image,
  state,
  hostHasCapacity: isSpared,
});
const observed = (machines: readonly PooledMachine[], more: Partial<ObservedPool> = {}): ObservedPool => ({
  machines,
  targets: [{ kind: pg, image: "trixie-2", count: 2, admitted: true }],
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
const shut = (id: string, state: PooledMachine["state"]) => one(id, state, pg, "trixie-2", false);

describe("the plan of the warm pool", () => {
  // biome-ignore format: a table
  it.each([
    ["creates one when there is none",                   observed([]),                                       ["create postgresql"]],
    ["creates one when one is missing",                  observed([a]),                                      ["create postgresql"]],
    ["creates one at a time",                            observed([one("a", "creating")]),                     []],
    ["creates none while machines with owners start",    observed([], { busy: true }),                       []],
    ["does nothing when enough wait",                    observed([a, b]),                                   []],
    ["does not remove one that is being created", observed([one("x", "creating"), a, b]),             []],
    ["removes surplus even when busy",                   observed([a, b, c], { busy: true }),                ["remove c"]],
    ["removes a kind without a target",                  observed([a, b, one("v", "waiting", valkey)]),      ["remove v"]],
    ["replaces one of an older image",                   observed([a, old]),                                 ["remove o", "create postgresql"]],
    ["retains all images while the newest is unknown", observed([a, old], { targets: unknown }),        []],
    ["waits for one whose image is not chosen yet",      observed([a, one("x", "creating", pg, "")]),          []],
    ["creates each kind with a target",                  observed([a], { targets: both }),                    ["create valkey"]],
    ["removes all and creates none on a full host", observed([shut("a", "waiting"), shut("x", "creating")], { targets: short }), ["remove a"]],
    ["retains waiting machines on a host without further capacity", observed([a], { targets: short }),           []],
    ["replaces machines of a full host on another", observed([shut("a", "waiting")]),           ["remove a", "create postgresql"]],
    ["is not blocked by one on an unreachable host", observed([shut("x", "creating")]),             ["create postgresql"]],
    ["creates one in the zone with capacity",            observed([], { targets: twoZones }),                 ["create postgresql"]],
    ["disowns a failed one and creates another",         observed([a, one("x", "failed")]),                  ["disown x", "create postgresql"]],
    ["never removes one with an instance",               observed([a, b, one("u", "used")]),                 ["disown u"]],
    ["never removes one with an instance on a full host", observed([shut("u", "used")], { targets: short }),  ["disown u"]],
  ] as const)("%s", (_, observed, steps) => {
    const words = planWarmPool(observed).map((step) => `${step.kind} ${step.kind === "create" ? step.of.software.name : step.machineId}`);
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
])("finds the largest burst of %s", (_, times, peak) => {
  expect(peakOf(times, 1_000_000)).toBe(peak);
});

// biome-ignore format: a table
it.each([
  ["the minimum without demand",       [],                                                       2, 20, ["postgresql 2"]],
  ["the size of the largest burst",    [{ kind: pg, peak: 7 }],                                  2, 20, ["postgresql 7"]],
  ["other kinds with demand", [{ kind: valkey, peak: 3 }],                          2, 20, ["postgresql 2", "valkey 3"]],
  ["at most the maximum in all",       [{ kind: pg, peak: 7 }, { kind: valkey, peak: 3 }],       2, 8,  ["postgresql 7", "valkey 1"]],
  ["nothing with a maximum of 0",      [{ kind: pg, peak: 7 }],                                  2, 0,  []],
] as const)("targets %s", (_, peaks, min, max, targets) => {
  const words = targetsOf(peaks, [pg], { min, max }).map(({ kind, count }) => `${kind.software.name} ${count}`);
  expect(words).toEqual(targets);
});
