import { expect, test } from "vitest";
import { isFailureConfirmed, isSuspect, silentAfterMs } from "./suspicion.ts";

const leaseReport = (requestedAgoMs: number, isEngineUnresponsive = false) => ({
  requestedAgoMs,
  isEngineUnresponsive,
});
const deaf = { streaming: false, silentMs: 0 };
const receives = { streaming: true, silentMs: 500 };
const waits = { streaming: true, silentMs: 3_500 };

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["without any request so far",        undefined,                 false],
  ["with a recent request",       leaseReport(900),                false],
  ["that paused for three seconds",     leaseReport(4_000),              false],
  ["that is silent for longer",         leaseReport(silentAfterMs),      true],
  ["whose engine is silent",            leaseReport(0, true),            true],
] as const)("a primary %s is suspect: %s", (_, report, suspect) => {
  expect(isSuspect(report)).toBe(suspect);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["by nobody",                                leaseReport(9_000),    [],            false],
  ["by a replica that lost it",                leaseReport(9_000),    [deaf],        true],
  ["by a replica that receives nothing from it", leaseReport(9_000),    [waits],       true],
  ["not while a replica receives from it",     leaseReport(9_000),    [deaf, receives], false],
  ["by its agent, even if its sender still sends",  leaseReport(0, true), [receives],   true],
  ["not by its agent if no replica would follow", leaseReport(0, true), [],           false],
] as const)("the suspicion is confirmed %s", (_, report, primaryReports, confirmed) => {
  expect(isFailureConfirmed(report, primaryReports)).toBe(confirmed);
});
