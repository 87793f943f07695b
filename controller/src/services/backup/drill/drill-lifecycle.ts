import { defineMachine, type EffectOf, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/** States of a drill. Its machine is created by `begun` and deleted after the drill has finished. */
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
