import { expect, test } from "vitest";
import type { PrimaryChange } from "../../managed-service.ts";
import { type MemberState, promoteTimeoutMs, planPrimaryChange, yieldTimeoutMs } from "./primary-change-plan.ts";

type Engine = MemberState["engine"];

const answering = (engine: Engine): MemberState => ({ isConnected: true, hasNewestSettings: true, engine });
const silent = (engine: Engine = "unknown"): MemberState => ({ isConnected: false, hasNewestSettings: true, engine });
const outdated = (engine: Engine): MemberState => ({ isConnected: true, hasNewestSettings: false, engine });

const current = 1;
const [lateYield, latePromote] = [yieldTimeoutMs + 1, promoteTimeoutMs + 1];
const promoted = { hasPromoted: true } as const;
const reverting = { to: "a" } as const;

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["waits for the old primary to end",                    "yield",   outdated("writes"),    answering("unknown"),  current,       {},        "wait"],
  ["compares once it has ended in order",                 "yield",   answering("ended"),    answering("unknown"),  current,       {},        "compare"],
  ["compares when it fell silent after that",             "yield",   silent("ended"),     answering("unknown"),  current,       {},        "compare"],
  ["reverts immediately when it did not end in order",      "yield",   answering("cutOff"),   answering("unknown"),  current,       {},        "revert"],
  ["goes back when the old one is silent for too long",   "yield",   { isConnected: false, hasNewestSettings: false, engine: "writes" }, answering("unknown"), lateYield, {}, "revert"],
  ["goes back when the replica has not all in time",      "yield",   answering("ended"),    answering("unknown"),  lateYield,   {},        "revert"],
  ["ends with the first write",                           "promote", answering("ended"),    answering("writes"),   current,       {},        "settle"],
  ["takes no old report for a first write",               "promote", answering("ended"),    silent("writes"),    latePromote, {},        "wait"],
  ["takes no write of before for a first write",          "promote", answering("ended"),    outdated("writes"),    current,       {},        "wait"],
  ["gives the new primary its time",                      "promote", answering("ended"),    answering("unknown"),  current,       {},        "wait"],
  ["recalls one that answers and takes no write",         "promote", answering("ended"),    answering("unknown"),  latePromote, {},        "recall"],
  ["waits for a silent one without a deadline",           "promote", answering("ended"),    silent(),            latePromote, {},        "wait"],
  ["never reverts from one that has been a primary",      "promote", answering("ended"),    answering("unknown"),  latePromote, promoted,  "wait"],
  ["waits until the recalled one has stored the higher term", "recall",  answering("ended"),    outdated("follower"),  latePromote, {},        "wait"],
  ["waits until its engine is stopped",                   "recall",  answering("ended"),    answering("unknown"),  latePromote, {},        "wait"],
  ["goes back when it never was a primary",               "recall",  answering("ended"),    answering("follower"), current,       {},        "revert"],
  ["trusts that report of one that is silent since",      "recall",  answering("ended"),    silent("follower"),  current,       {},        "revert"],
  ["tries it again while the old one is silent",          "recall",  silent("ended"),     answering("follower"), current,       {},        "retry"],
  ["resumes with one that has been a primary",            "recall",  answering("ended"),    answering("ended"),    current,       {},        "resume"],
  ["resumes with one that was killed as a primary",       "recall",  answering("ended"),    answering("cutOff"),   current,       {},        "resume"],
  ["is over when the old one takes writes again",         "promote", answering("writes"),   answering("writes"),   current,       reverting, "settle"],
  ["is over when the old one is silent",                  "promote", silent(),            silent(),            current,       reverting, "settle"],
  ["gives the old one its time",                          "promote", answering("unknown"),  answering("unknown"),  current,       reverting, "wait"],
  ["is over when nothing more can be done",               "promote", answering("unknown"),  answering("unknown"),  latePromote, reverting, "settle"],
] as const)("a primary change %s", (_, step, from, to, now, more, verdict) => {
  const primaryChange: PrimaryChange = { from: "a", to: "b", step, since: 0, ...more };
  expect(planPrimaryChange(primaryChange, from, to, now)).toBe(verdict);
});

test("a step counts from its own beginning", () => {
  const started = { from: "a", to: "b", step: "promote", since: 0, stepSince: latePromote } as const;
  expect(planPrimaryChange(started, answering("ended"), answering("unknown"), latePromote + 1)).toBe("wait");
});
