import { defineMachine, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * States of the rollout of one agent release, the newest that a controller offered, to all machines. Halted: too many
 * machines failed; an operator or another release continues it. Paused: an operator continues it.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const agentRolloutLifecycle = defineMachine("agent-rollout", [
  // from        event               to           effect
  ["Rolling",    "pauseRequested",   "Paused",    "none"],
  ["Rolling",    "failuresExceeded", "Halted",    "warn"],
  ["Rolling",    "allUpgraded",      "Completed", "none"],
  ["Rolling",    "released",         "Rolling",   "startOver"],
  ["Paused",     "resumeRequested",  "Rolling",   "retryFailures"],
  ["Paused",     "released",         "Paused",    "startOver"],
  ["Halted",     "resumeRequested",  "Rolling",   "retryFailures"],
  ["Halted",     "pauseRequested",   "Paused",    "none"],
  ["Halted",     "released",         "Rolling",   "startOver"],
  ["Completed",  "machinesBehind",   "Rolling",   "none"],
  ["Completed",  "pauseRequested",   "Paused",    "none"],
  ["Completed",  "released",         "Rolling",   "startOver"],
]);

export type AgentRolloutState = StateOf<typeof agentRolloutLifecycle>;
export type AgentRolloutEvent = EventOf<typeof agentRolloutLifecycle>;
