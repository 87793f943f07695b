import { defineMachine, type EffectOf, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/** The life of a drill. Its machine is made when it begins, and goes after its end, whichever that is. */
// biome-ignore format: a table, aligned so that it reads as one
export const drillLifecycle = defineMachine("drill", [
  // from       event     to           effect
  ["pending",  "begun",  "running",   "none"],
  ["pending",  "failed", "failed",    "announceFailed"],
  ["running",  "passed", "completed", "none"],
  ["running",  "failed", "failed",    "announceFailed"],
]);

export type DrillState = StateOf<typeof drillLifecycle>;
export type DrillEvent = EventOf<typeof drillLifecycle>;
export type DrillEffect = EffectOf<typeof drillLifecycle>;
