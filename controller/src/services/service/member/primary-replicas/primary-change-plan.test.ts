import { expect, test } from "vitest";
import type { PrimaryChange } from "../../managed-service.ts";
import { type MemberState, promoteTimeoutMs, planPrimaryChange, yieldTimeoutMs } from "./primary-change-plan.ts";

type Engine = MemberState["engine"];

const answers = (engine: Engine): MemberState => ({ answers: true, hasNewestSettings: true, engine });
const silent = (engine: Engine = "unknown"): MemberState => ({ answers: false, hasNewestSettings: true, engine });
const unheld = (engine: Engine): MemberState => ({ answers: true, hasNewestSettings: false, engine });

const current = 1;
const [lateYield, latePromote] = [yieldTimeoutMs + 1, promoteTimeoutMs + 1];
const promoted = { hasPromoted: true } as const;
const reverting = { to: "a" } as const;

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["waits for the old primary to end",                    "yield",   unheld("writes"),    answers("unknown"),  current,       {},        "wait"],
  ["compares once it has ended in order",                 "yield",   answers("ended"),    answers("unknown"),  current,       {},        "compare"],
  ["compares when it fell silent after that",             "yield",   silent("ended"),     answers("unknown"),  current,       {},        "compare"],
  ["goes back at once when it did not end in order",      "yield",   answers("cutOff"),   answers("unknown"),  current,       {},        "revert"],
  ["goes back when the old one is silent for too long",   "yield",   { answers: false, hasNewestSettings: false, engine: "writes" }, answers("unknown"), lateYield, {}, "revert"],
  ["goes back when the replica has not all in time",      "yield",   answers("ended"),    answers("unknown"),  lateYield,   {},        "revert"],
  ["ends with the first write",                           "promote", answers("ended"),    answers("writes"),   current,       {},        "settle"],
  ["takes no old report for a first write",               "promote", answers("ended"),    silent("writes"),    latePromote, {},        "wait"],
  ["takes no write of before for a first write",          "promote", answers("ended"),    unheld("writes"),    current,       {},        "wait"],
  ["gives the new primary its time",                      "promote", answers("ended"),    answers("unknown"),  current,       {},        "wait"],
  ["recalls one that answers and takes no write",         "promote", answers("ended"),    answers("unknown"),  latePromote, {},        "recall"],
  ["waits for a silent one without a deadline",           "promote", answers("ended"),    silent(),            latePromote, {},        "wait"],
  ["never reverts from one that has been a primary",      "promote", answers("ended"),    answers("unknown"),  latePromote, promoted,  "wait"],
  ["waits until the recalled one has stored the higher term", "recall",  answers("ended"),    unheld("follower"),  latePromote, {},        "wait"],
  ["waits until its engine is stopped",                   "recall",  answers("ended"),    answers("unknown"),  latePromote, {},        "wait"],
  ["goes back when it never was a primary",               "recall",  answers("ended"),    answers("follower"), current,       {},        "revert"],
  ["trusts that report of one that is silent since",      "recall",  answers("ended"),    silent("follower"),  current,       {},        "revert"],
  ["tries it again while the old one is silent",          "recall",  silent("ended"),     answers("follower"), current,       {},        "retry"],
  ["resumes with one that has been a primary",            "recall",  answers("ended"),    answers("ended"),    current,       {},        "resume"],
  ["resumes with one that was killed as a primary",       "recall",  answers("ended"),    answers("cutOff"),   current,       {},        "resume"],
  ["is over when the old one takes writes again",         "promote", answers("writes"),   answers("writes"),   current,       reverting, "settle"],
  ["is over when the old one is silent",                  "promote", silent(),            silent(),            current,       reverting, "settle"],
  ["gives the old one its time",                          "promote", answers("unknown"),  answers("unknown"),  current,       reverting, "wait"],
  ["is over when nothing more can be done",               "promote", answers("unknown"),  answers("unknown"),  latePromote, reverting, "settle"],
] as const)("a primary change %s", (_, step, from, to, now, more, verdict) => {
  const primaryChange: PrimaryChange = { from: "a", to: "b", step, since: 0, ...more };
  expect(planPrimaryChange(primaryChange, from, to, now)).toBe(verdict);
});

test("a step counts from its own beginning", () => {
  const started = { from: "a", to: "b", step: "promote", since: 0, stepSince: latePromote } as const;
  expect(planPrimaryChange(started, answers("ended"), answers("unknown"), latePromote + 1)).toBe("wait");
});
