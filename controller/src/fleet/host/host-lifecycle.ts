import { defineMachine, type StateOf } from "@holdfast/common/machine.ts";

/**
 * States of a host, by the result of the last poll. Whether it accepts machines is part of its spec (cordoned, drain),
 * not of its state. An unreachable host proves nothing about its machines. A host that an operator declared destroyed
 * never returns.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const hostLifecycle = defineMachine("host", [
  // from          event         to             effect
  ["joining",      "responded",  "ready",       "info"],
  ["joining",      "destroyed",  "destroyed",   "warn"],
  ["ready",        "fellSilent", "unreachable", "warn"],
  ["ready",        "destroyed",  "destroyed",   "warn"],
  ["unreachable",  "responded",  "ready",       "info"],
  ["unreachable",  "destroyed",  "destroyed",   "warn"],
]);

export type HostState = StateOf<typeof hostLifecycle>;
export type HostEvent = (typeof hostLifecycle.rows)[number][1];

/** States of a host's drain. Blocked: a service prevents it, and only its owner or an operator can resolve that. */
// biome-ignore format: a table, aligned so that it reads as one
export const hostDrainLifecycle = defineMachine("host-drain", [
  // from        event          to          effect
  ["none",       "requested",    "draining",  "info"],
  ["draining",   "ownerBlocks",  "blocked",   "warn"],
  ["draining",   "emptied",      "drained",   "info"],
  ["draining",   "cancelled",    "none",      "info"],
  ["blocked",    "unblocked",    "draining",  "info"],
  ["blocked",    "emptied",      "drained",   "info"],
  ["blocked",    "cancelled",    "none",      "info"],
  ["drained",    "refilled",     "draining",  "info"],
  ["drained",    "cancelled",    "none",      "info"],
]);

export type HostDrainState = StateOf<typeof hostDrainLifecycle>;
export type HostDrainEvent = (typeof hostDrainLifecycle.rows)[number][1];
