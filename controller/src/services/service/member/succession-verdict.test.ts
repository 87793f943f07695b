import { expect, test } from "vitest";
import type { Succession } from "../managed-service.ts";
import { type MemberWord, promoteWithinMs, succeed, yieldWithinMs } from "./succession-verdict.ts";

type Engine = MemberWord["engine"];

const answers = (engine: Engine): MemberWord => ({ answers: true, isHeld: true, engine });
const silent = (engine: Engine = "unknown"): MemberWord => ({ answers: false, isHeld: true, engine });
const unheld = (engine: Engine): MemberWord => ({ answers: true, isHeld: false, engine });

const fresh = 1;
const [lateYield, latePromote] = [yieldWithinMs + 1, promoteWithinMs + 1];
const promoted = { hasPromoted: true } as const;
const goingBack = { to: "a" } as const;

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["waits for the old primary to end",                    "yield",   unheld("writes"),    answers("unknown"),  fresh,       {},        "wait"],
  ["compares once it has ended in order",                 "yield",   answers("ended"),    answers("unknown"),  fresh,       {},        "compare"],
  ["compares when it fell silent after that",             "yield",   silent("ended"),     answers("unknown"),  fresh,       {},        "compare"],
  ["goes back at once when it did not end in order",      "yield",   answers("cutOff"),   answers("unknown"),  fresh,       {},        "goBack"],
  ["goes back when the old one is silent for too long",   "yield",   { answers: false, isHeld: false, engine: "writes" }, answers("unknown"), lateYield, {}, "goBack"],
  ["goes back when the replica has not all in time",      "yield",   answers("ended"),    answers("unknown"),  lateYield,   {},        "goBack"],
  ["ends with the first write",                           "promote", answers("ended"),    answers("writes"),   fresh,       {},        "settle"],
  ["takes no old word for a first write",                 "promote", answers("ended"),    silent("writes"),    latePromote, {},        "wait"],
  ["takes no write of before for a first write",          "promote", answers("ended"),    unheld("writes"),    fresh,       {},        "wait"],
  ["gives the new primary its time",                      "promote", answers("ended"),    answers("unknown"),  fresh,       {},        "wait"],
  ["recalls one that answers and takes no write",         "promote", answers("ended"),    answers("unknown"),  latePromote, {},        "recall"],
  ["waits for one that is silent, however long",          "promote", answers("ended"),    silent(),            latePromote, {},        "wait"],
  ["never turns from one that has been a primary",        "promote", answers("ended"),    answers("unknown"),  latePromote, promoted,  "wait"],
  ["waits until the recalled one keeps the higher term",  "recall",  answers("ended"),    unheld("follower"),  latePromote, {},        "wait"],
  ["waits until its engine is stopped",                   "recall",  answers("ended"),    answers("unknown"),  latePromote, {},        "wait"],
  ["goes back when it never was a primary",               "recall",  answers("ended"),    answers("follower"), fresh,       {},        "goBack"],
  ["believes that of one that is silent since",           "recall",  answers("ended"),    silent("follower"),  fresh,       {},        "goBack"],
  ["tries it again while the old one is silent",          "recall",  silent("ended"),     answers("follower"), fresh,       {},        "retry"],
  ["goes on with one that has been a primary",            "recall",  answers("ended"),    answers("ended"),    fresh,       {},        "goOn"],
  ["goes on with one that was killed as a primary",       "recall",  answers("ended"),    answers("cutOff"),   fresh,       {},        "goOn"],
  ["is over when the old one takes writes again",         "promote", answers("writes"),   answers("writes"),   fresh,       goingBack, "settle"],
  ["is over when the old one is silent",                  "promote", silent(),            silent(),            fresh,       goingBack, "settle"],
  ["gives the old one its time",                          "promote", answers("unknown"),  answers("unknown"),  fresh,       goingBack, "wait"],
  ["is over when nothing more can be done",               "promote", answers("unknown"),  answers("unknown"),  latePromote, goingBack, "settle"],
] as const)("a succession %s", (_, step, from, to, now, more, verdict) => {
  const succession: Succession = { from: "a", to: "b", step, since: 0, ...more };
  expect(succeed(succession, from, to, now)).toBe(verdict);
});

test("a step counts from its own beginning", () => {
  const begun = { from: "a", to: "b", step: "promote", since: 0, stepSince: latePromote } as const;
  expect(succeed(begun, answers("ended"), answers("unknown"), latePromote + 1)).toBe("wait");
});
