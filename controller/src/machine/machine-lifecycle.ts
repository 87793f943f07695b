import { defineMachine, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * States of a machine. They are output: what was ordered last, or what the provider was found to have; a plan reads the
 * provider, never these.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const machineLifecycle = defineMachine("machine", [
  // from        event             to            effect
  ["pending",    "createDelayed",  "creating",   "none"],
  ["pending",    "startOrdered",   "starting",   "none"],
  ["pending",    "foundStopped",   "stopped",    "none"],
  ["pending",    "foundRunning",   "running",    "none"],
  ["pending",    "failed",         "failed",     "warn"],
  ["pending",    "destroyOrdered", "destroying", "none"],

  ["creating",   "startOrdered",   "starting",   "none"],
  ["creating",   "foundStopped",   "stopped",    "none"],
  ["creating",   "foundRunning",   "running",    "none"],
  ["creating",   "failed",         "failed",     "warn"],
  ["creating",   "destroyOrdered", "destroying", "none"],

  ["stopped",    "createDelayed",  "creating",   "none"],
  ["stopped",    "startOrdered",   "starting",   "none"],
  ["stopped",    "stopOrdered",    "stopping",   "none"],
  ["stopped",    "foundRunning",   "running",    "none"],
  ["stopped",    "failed",         "failed",     "warn"],
  ["stopped",    "destroyOrdered", "destroying", "none"],

  ["starting",   "createDelayed",  "creating",   "none"],
  ["starting",   "stopOrdered",    "stopping",   "none"],
  ["starting",   "foundStopped",   "stopped",    "none"],
  ["starting",   "foundRunning",   "running",    "none"],
  ["starting",   "failed",         "failed",     "warn"],
  ["starting",   "destroyOrdered", "destroying", "none"],

  ["running",    "createDelayed",  "creating",   "none"],
  ["running",    "died",           "starting",   "warn"],
  ["running",    "stopOrdered",    "stopping",   "none"],
  ["running",    "foundStopped",   "stopped",    "none"],
  ["running",    "failed",         "failed",     "warn"],
  ["running",    "destroyOrdered", "destroying", "none"],

  ["stopping",   "createDelayed",  "creating",   "none"],
  ["stopping",   "startOrdered",   "starting",   "none"],
  ["stopping",   "foundStopped",   "stopped",    "none"],
  ["stopping",   "foundRunning",   "running",    "none"],
  ["stopping",   "failed",         "failed",     "warn"],
  ["stopping",   "destroyOrdered", "destroying", "none"],

  ["failed",     "createDelayed",  "creating",   "none"],
  ["failed",     "startOrdered",   "starting",   "none"],
  ["failed",     "stopOrdered",    "stopping",   "none"],
  ["failed",     "foundStopped",   "stopped",    "none"],
  ["failed",     "foundRunning",   "running",    "none"],
  ["failed",     "destroyOrdered", "destroying", "none"],

  ["destroying", "failed",         "failed",     "warn"],
]);

export type MachineState = StateOf<typeof machineLifecycle>;
export type MachineEvent = EventOf<typeof machineLifecycle>;
