import { defineMachine, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * States of a machine. They are output: the last order, or the state that the provider reported. Plans read the
 * provider and never the state. Waiting: a running machine of the warm pool, with a connected agent and without an
 * owner. Claimed: it has an owner, and does not have the owner's size yet. Unreachable: neither its host nor its agent
 * responds, so its state is unknown.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const machineLifecycle = defineMachine("machine", [
  // from        event             to             effect
  ["pending",    "createDelayed",  "creating",    "none"],
  ["pending",    "startOrdered",   "starting",    "none"],
  ["pending",    "foundStopped",   "stopped",     "none"],
  ["pending",    "foundRunning",   "running",     "none"],
  ["pending",    "foundWaiting",   "waiting",     "none"],
  ["pending",    "failed",         "failed",      "warn"],
  ["pending",    "destroyOrdered", "destroying",  "none"],
  ["pending",    "hostFellSilent", "unreachable", "warn"],

  ["creating",   "startOrdered",   "starting",    "none"],
  ["creating",   "foundStopped",   "stopped",     "none"],
  ["creating",   "foundRunning",   "running",     "none"],
  ["creating",   "foundWaiting",   "waiting",     "none"],
  ["creating",   "failed",         "failed",      "warn"],
  ["creating",   "destroyOrdered", "destroying",  "none"],
  ["creating",   "hostFellSilent", "unreachable", "warn"],

  ["stopped",    "createDelayed",  "creating",    "none"],
  ["stopped",    "startOrdered",   "starting",    "none"],
  ["stopped",    "stopOrdered",    "stopping",    "none"],
  ["stopped",    "foundRunning",   "running",     "none"],
  ["stopped",    "foundWaiting",   "waiting",     "none"],
  ["stopped",    "failed",         "failed",      "warn"],
  ["stopped",    "destroyOrdered", "destroying",  "none"],
  ["stopped",    "hostFellSilent", "unreachable", "warn"],

  ["starting",   "createDelayed",  "creating",    "none"],
  ["starting",   "stopOrdered",    "stopping",    "none"],
  ["starting",   "foundStopped",   "stopped",     "none"],
  ["starting",   "foundRunning",   "running",     "none"],
  ["starting",   "foundWaiting",   "waiting",     "none"],
  ["starting",   "failed",         "failed",      "warn"],
  ["starting",   "destroyOrdered", "destroying",  "none"],
  ["starting",   "hostFellSilent", "unreachable", "warn"],

  ["running",    "createDelayed",  "creating",    "none"],
  ["running",    "crashed",        "starting",    "warn"],
  ["running",    "stopOrdered",    "stopping",    "none"],
  ["running",    "foundStopped",   "stopped",     "none"],
  ["running",    "failed",         "failed",      "warn"],
  ["running",    "foundWaiting",   "waiting",     "none"],
  ["running",    "destroyOrdered", "destroying",  "none"],
  ["running",    "hostFellSilent", "unreachable", "warn"],

  ["waiting",    "claimed",        "claimed",     "none"],
  ["waiting",    "createDelayed",  "creating",    "none"],
  ["waiting",    "crashed",        "starting",    "warn"],
  ["waiting",    "stopOrdered",    "stopping",    "none"],
  ["waiting",    "foundStopped",   "stopped",     "none"],
  ["waiting",    "foundRunning",   "running",     "none"],
  ["waiting",    "failed",         "failed",      "warn"],
  ["waiting",    "destroyOrdered", "destroying",  "none"],
  ["waiting",    "hostFellSilent", "unreachable", "warn"],

  ["claimed",    "createDelayed",  "creating",    "none"],
  ["claimed",    "crashed",        "starting",    "warn"],
  ["claimed",    "stopOrdered",    "stopping",    "none"],
  ["claimed",    "foundStopped",   "stopped",     "none"],
  ["claimed",    "foundRunning",   "running",     "none"],
  ["claimed",    "failed",         "failed",      "warn"],
  ["claimed",    "destroyOrdered", "destroying",  "none"],
  ["claimed",    "hostFellSilent", "unreachable", "warn"],

  ["stopping",   "createDelayed",  "creating",    "none"],
  ["stopping",   "startOrdered",   "starting",    "none"],
  ["stopping",   "foundStopped",   "stopped",     "none"],
  ["stopping",   "foundRunning",   "running",     "none"],
  ["stopping",   "foundWaiting",   "waiting",     "none"],
  ["stopping",   "failed",         "failed",      "warn"],
  ["stopping",   "destroyOrdered", "destroying",  "none"],
  ["stopping",   "hostFellSilent", "unreachable", "warn"],

  ["failed",     "createDelayed",  "creating",    "none"],
  ["failed",     "startOrdered",   "starting",    "none"],
  ["failed",     "stopOrdered",    "stopping",    "none"],
  ["failed",     "foundStopped",   "stopped",     "none"],
  ["failed",     "foundRunning",   "running",     "none"],
  ["failed",     "foundWaiting",   "waiting",     "none"],
  ["failed",     "destroyOrdered", "destroying",  "none"],
  ["failed",     "hostFellSilent", "unreachable", "warn"],

  ["unreachable", "createDelayed",  "creating",    "none"],
  ["unreachable", "startOrdered",   "starting",    "none"],
  ["unreachable", "stopOrdered",    "stopping",    "none"],
  ["unreachable", "foundStopped",   "stopped",     "none"],
  ["unreachable", "foundRunning",   "running",     "none"],
  ["unreachable", "foundWaiting",   "waiting",     "none"],
  ["unreachable", "failed",         "failed",      "warn"],
  ["unreachable", "destroyOrdered", "destroying",  "none"],

  ["destroying", "failed",         "failed",      "warn"],
]);

export type MachineState = StateOf<typeof machineLifecycle>;
export type MachineEvent = EventOf<typeof machineLifecycle>;
