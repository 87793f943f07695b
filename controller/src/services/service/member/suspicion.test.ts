import { expect, test } from "vitest";
import { isConfirmed, isSuspect, silentAfterMs } from "./suspicion.ts";

const heard = (askedAgoMs: number, isEngineSilent = false) => ({ askedAgoMs, isEngineSilent });
const deaf = { streaming: false, silentMs: 0 };
const hears = { streaming: true, silentMs: 500 };
const waits = { streaming: true, silentMs: 3_500 };

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["that nobody can have heard of yet", undefined,                 false],
  ["that asked a moment ago",           heard(900),                false],
  ["that paused for three seconds",     heard(4_000),              false],
  ["that is silent for longer",         heard(silentAfterMs),      true],
  ["whose engine is silent",            heard(0, true),            true],
] as const)("a primary %s is suspect: %s", (_, word, suspect) => {
  expect(isSuspect(word)).toBe(suspect);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["by nobody",                                heard(9_000),    [],            false],
  ["by a replica that lost it",                heard(9_000),    [deaf],        true],
  ["by a replica that hears nothing of it",    heard(9_000),    [waits],       true],
  ["not while a replica hears it",             heard(9_000),    [deaf, hears], false],
  ["by its agent, whatever its sender still sends", heard(0, true), [hears],   true],
  ["not by its agent where nobody would follow", heard(0, true), [],           false],
] as const)("the suspicion is confirmed %s", (_, word, witnesses, confirmed) => {
  expect(isConfirmed(word, witnesses)).toBe(confirmed);
});
