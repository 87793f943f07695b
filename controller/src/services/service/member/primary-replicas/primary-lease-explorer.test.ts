import { expect, test } from "vitest";
import { createRandom } from "@holdfast/testing/random.ts";
import {
  newPrimaryLeaseModel,
  type PrimaryLeaseModel,
  brokenInvariantOf,
} from "@holdfast/testing/controller/primary-lease-state.ts";
import {
  nextState,
  type Bug,
  type Action,
  actions,
  compositeActions,
} from "@holdfast/testing/controller/primary-lease-scenario.ts";

/** All scenarios of this many actions, from each of the initial states. */
const depth = 4;
const all: readonly Action[] = [...actions, ...compositeActions];

/** A separate history, in which the members reach the same position each time. */
const again: readonly Action[] = ["restart", "confirm", "wait 3"];

const confirmed: readonly Action[] = ["confirm", "wait 3"];

/** Initial states from which a few actions have an effect. */
// biome-ignore format: a table, aligned so that it reads as one
const initialStates: readonly (readonly [name: string, scenario: readonly Action[]])[] = [
  ["a primary with a new lease",                     ["know 0", "renew 0"]],
  ["a fence that one controller wrote",              ["know 1", "renew 1", "fence 0"]],
  ["a request that waits, and a fence",              ["know 0", "renew 0", "ask", "take 0", "fence 0", "wait 3", "wait 1", "wait 1"]],
  ["an answer that waits at its agent, and a fence", ["know 0", "renew 0", "ask", "take 0", "grant", "fence 0", "wait 3", "wait 1", "wait 1"]],
  ["a controller that misses a fence",               ["know 1", "renew 1", "fence 0", "wait 3", "renew 1", "wait 3", "renew 1"]],
  ["a last grant before a fence arrives",            ["know 1", "fence 0", "wait 1", "wait 1", "renew 1", "wait 3", "wait 3", "wait 3"]],
  ["members that confirm beside a fence",            ["confirm", "fence 0", "wait 3", "confirm", "wait 3", "confirm", "wait 3"]],
  ["a fence that the other controller does not read", ["know 1", "renew 1", "fence 0", "wait 3", "wait 3", "renew 1", "wait 3"]],
  ["a fence whose other controller granted last",    ["know 1", "renew 1", "wait 3", "know 0", "know 1", "renew 1", "fence 0", "wait 3", "wait 1"]],
  ["members that confirm until a fence is agreed on", [...confirmed, ...confirmed, ...confirmed, ...confirmed, "know 1", "fence 0", "acknowledge 0", "wait 1", "wait 1"]],
  ["a machine that its host ends, and that starts",  ["know 1", "fence 0", "order 0", "renew 1", "ordered 0"]],
  ["a primary that starts again each time",          ["know 0", "fence 0", ...again, ...again, ...again, "restart", "confirm"]],
];

/** The initial states where each fault is found soonest. */
const planted: readonly (readonly [bug: Bug, initialState: number])[] = [
  ["lateAnswers", 2],
  ["timeOnTheWay", 3],
  ["oldKnowledge", 4],
  ["noWait", 4],
  ["noMargin", 4],
  ["noVotes", 6],
  ["noHistory", 11],
  ["earlyOrder", 10],
  ["deadOrder", 8],
  ["ackOnly", 9],
  ["forgetsDisconnected", 8],
];

/**
 * Explores every state that a scenario of this many actions reaches, once; returns the first wrong one with its
 * scenario.
 */
function explore(trace: readonly Action[], bug?: Bug): { readonly states: number; readonly wrong: string | undefined } {
  const started = trace.reduce((state, action) => nextState(state, action, bug) ?? state, newPrimaryLeaseModel());
  const seen = new Set<string>();
  let edge: { readonly state: PrimaryLeaseModel; readonly reported: readonly Action[] }[] = [
    { state: started, reported: [] },
  ];
  for (let round = 0; round < depth; round += 1) {
    const next: typeof edge = [];
    for (const { state, reported } of edge) {
      for (const action of all) {
        const then = nextState(state, action, bug);
        const key = then && JSON.stringify(then);
        if (then === undefined || key === undefined || seen.has(key)) continue;
        seen.add(key);
        const wrong = brokenInvariantOf(then);
        if (wrong !== undefined) return { states: seen.size, wrong: `${wrong}: ${[...reported, action].join(", ")}` };
        next.push({ state: then, reported: [...reported, action] });
      }
    }
    edge = next;
  }
  return { states: seen.size, wrong: undefined };
}

test.each(initialStates)("nothing is wrong after any few actions from %s", (_, trace) => {
  const { states, wrong } = explore(trace);
  expect(wrong).toBeUndefined();
  expect(states).toBeGreaterThan(1_000);
});

test.each(planted)("finds the fault of a protocol: %s", (bug, initialState) => {
  const [, trace = []] = initialStates[initialState] ?? [];
  expect(explore(trace, bug).wrong).toContain("two writable primaries");
});

test("no invariant is violated in many long histories, and many of them reach a new primary", () => {
  // A fixed seed, so that each run has the same scenarios. A change of the protocol raises their number once.
  const random = createRandom(15);
  // Successes are more frequent than failures.
  const weighted: readonly Action[] = [
    ...all,
    ...compositeActions,
    ...compositeActions,
    ...compositeActions,
    "wait 1",
    "wait 3",
    "wait 3",
  ];
  let promoted = 0;
  for (let trace = 0; trace < 2_000; trace += 1) {
    let state = newPrimaryLeaseModel();
    for (let action = 0; action < 60; action += 1) {
      state = nextState(state, random.pick(weighted)) ?? state;
      expect(brokenInvariantOf(state)).toBeUndefined();
    }
    if (state.isPromoted) promoted += 1;
  }
  expect(promoted).toBeGreaterThan(200);
});
