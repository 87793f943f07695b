import { defineMachine, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/** States of a durable task. An ended task does not change any more; a later result is acknowledged and dropped. */
// biome-ignore format: a table, aligned so that it reads as one
export const taskLifecycle = defineMachine("task", [
  // from      event             to           effect
  ["pending", "delivered",      "running",   "none"],
  ["pending", "succeeded",      "completed", "acknowledge"],
  ["pending", "failed",         "failed",    "acknowledge"],
  ["pending", "cancelled",      "failed",    "cancelAtAgent"],
  ["pending", "deadlinePassed", "failed",    "cancelAtAgent"],
  ["pending", "machineDeleted", "failed",    "none"],
  ["running", "succeeded",      "completed", "acknowledge"],
  ["running", "failed",         "failed",    "acknowledge"],
  ["running", "deadlinePassed", "failed",    "cancelAtAgent"],
  ["running", "machineDeleted", "failed",    "none"],
]);

export type TaskStateName = StateOf<typeof taskLifecycle>;
export type TaskEvent = EventOf<typeof taskLifecycle>;
