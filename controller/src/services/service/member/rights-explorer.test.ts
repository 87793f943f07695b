import { expect, test } from "vitest";
import { createRandom } from "../../../../../test/support/random.ts";
import { newRightsState, type RightsState, wrongIn } from "../../../../../test/support/controller/rights-state.ts";
import { after, type Bug, type Deed, deeds, wholeDeeds } from "../../../../../test/support/controller/rights-world.ts";

/** All stories of so many deeds, from each of the beginnings. */
const depth = 4;
const all: readonly Deed[] = [...deeds, ...wholeDeeds];

/** A history of its own, in which its members come to the same position each time. */
const again: readonly Deed[] = ["restart", "confirm", "wait 3"];

const confirmed: readonly Deed[] = ["confirm", "wait 3"];

/** Beginnings are where a story of a few deeds comes to something. */
// biome-ignore format: a table, aligned so that it reads as one
const beginnings: readonly (readonly [name: string, story: readonly Deed[]])[] = [
  ["a primary with a fresh right",                   ["know 0", "renew 0"]],
  ["a fence that one controller wrote",              ["know 1", "renew 1", "fence 0"]],
  ["a request that waits, and a fence",              ["know 0", "renew 0", "ask", "take 0", "fence 0", "wait 3", "wait 1", "wait 1"]],
  ["an answer that waits at its agent, and a fence", ["know 0", "renew 0", "ask", "take 0", "grant", "fence 0", "wait 3", "wait 1", "wait 1"]],
  ["a controller that does not hear of a fence",     ["know 1", "renew 1", "fence 0", "wait 3", "renew 1", "wait 3", "renew 1"]],
  ["a last grant before a fence is known",           ["know 1", "fence 0", "wait 1", "wait 1", "renew 1", "wait 3", "wait 3", "wait 3"]],
  ["members that confirm beside a fence",            ["confirm", "fence 0", "wait 3", "confirm", "wait 3", "confirm", "wait 3"]],
  ["a fence that the other one does not look up",    ["know 1", "renew 1", "fence 0", "wait 3", "wait 3", "renew 1", "wait 3"]],
  ["a fence whose other controller granted last",    ["know 1", "renew 1", "wait 3", "know 0", "know 1", "renew 1", "fence 0", "wait 3", "wait 1"]],
  ["members that confirm until a fence is agreed on", [...confirmed, ...confirmed, ...confirmed, ...confirmed, "know 1", "fence 0", "acknowledge 0", "wait 1", "wait 1"]],
  ["a machine that its host ends, and that starts",  ["know 1", "fence 0", "order 0", "renew 1", "ordered 0"]],
  ["a primary that starts anew each time",           ["know 0", "fence 0", ...again, ...again, ...again, "restart", "confirm"]],
];

/** Where each is found soonest. */
const planted: readonly (readonly [bug: Bug, beginning: number])[] = [
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
  ["forgetsGone", 8],
];

/** Every state that a story of so many deeds leads to, once; the first that is wrong, with its story. */
function explore(story: readonly Deed[], bug?: Bug): { readonly states: number; readonly wrong: string | undefined } {
  const begun = story.reduce((state, deed) => after(state, deed, bug) ?? state, newRightsState());
  const seen = new Set<string>();
  let edge: { readonly state: RightsState; readonly told: readonly Deed[] }[] = [{ state: begun, told: [] }];
  for (let round = 0; round < depth; round += 1) {
    const next: typeof edge = [];
    for (const { state, told } of edge) {
      for (const deed of all) {
        const then = after(state, deed, bug);
        const key = then && JSON.stringify(then);
        if (then === undefined || key === undefined || seen.has(key)) continue;
        seen.add(key);
        const wrong = wrongIn(then);
        if (wrong !== undefined) return { states: seen.size, wrong: `${wrong}: ${[...told, deed].join(", ")}` };
        next.push({ state: then, told: [...told, deed] });
      }
    }
    edge = next;
  }
  return { states: seen.size, wrong: undefined };
}

test.each(beginnings)("nothing is wrong after any few deeds from %s", (_, story) => {
  const { states, wrong } = explore(story);
  expect(wrong).toBeUndefined();
  expect(states).toBeGreaterThan(1_000);
});

test.each(planted)("finds what a protocol does wrong: %s", (bug, beginning) => {
  const [, story = []] = beginnings[beginning] ?? [];
  expect(explore(story, bug).wrong).toContain("two writable primaries");
});

test("nothing is wrong in any of many long stories, and many of them come to a new primary", () => {
  // The same stories each time: whoever changes the protocol raises their number for once.
  const random = createRandom(15);
  // What goes well comes more often than what fails.
  const likely: readonly Deed[] = [...all, ...wholeDeeds, ...wholeDeeds, ...wholeDeeds, "wait 1", "wait 3", "wait 3"];
  let promoted = 0;
  for (let story = 0; story < 2_000; story += 1) {
    let state = newRightsState();
    for (let deed = 0; deed < 60; deed += 1) {
      state = after(state, random.pick(likely)) ?? state;
      expect(wrongIn(state)).toBeUndefined();
    }
    if (state.isPromoted) promoted += 1;
  }
  expect(promoted).toBeGreaterThan(200);
});
