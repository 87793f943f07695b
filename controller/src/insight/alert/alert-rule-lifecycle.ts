import { defineMachine, type EffectOf, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * State table of an alert rule. `firing`, `no_data` and `paused` are stored; `ok` and `pending` are computed from
 * samples. Deleting a rule that fires resolves its alert first, as a change of the rule does.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const alertRuleLifecycle = defineMachine("alert-rule", [
  // from      event              to         effect
  ["ok",       "conditionTrue",   "pending", "none"],
  ["ok",       "noSample",        "no_data", "announceFired"],
  ["ok",       "pauseRequested",  "paused",  "none"],
  ["pending",  "heldForDuration", "firing",  "announceFired"],
  ["pending",  "conditionFalse",  "ok",      "none"],
  ["pending",  "noSample",        "no_data", "announceFired"],
  ["pending",  "ruleChanged",     "ok",      "none"],
  ["pending",  "serviceStopped",  "ok",      "none"],
  ["pending",  "serviceDeleted",  "ok",      "none"],
  ["pending",  "pauseRequested",  "paused",  "none"],
  ["firing",   "conditionFalse",  "ok",      "announceResolved"],
  ["firing",   "noSample",        "no_data", "none"],
  ["firing",   "ruleChanged",     "ok",      "announceResolved"],
  ["firing",   "serviceStopped",  "ok",      "announceResolved"],
  ["firing",   "serviceDeleted",  "ok",      "announceResolved"],
  ["firing",   "pauseRequested",  "paused",  "announceResolved"],
  ["no_data",  "conditionFalse",  "ok",      "announceResolved"],
  ["no_data",  "heldForDuration", "firing",  "none"],
  ["no_data",  "ruleChanged",     "ok",      "announceResolved"],
  ["no_data",  "serviceStopped",  "ok",      "announceResolved"],
  ["no_data",  "serviceDeleted",  "ok",      "announceResolved"],
  ["no_data",  "pauseRequested",  "paused",  "announceResolved"],
  ["paused",   "resumeRequested", "ok",      "none"],
]);

export type AlertRuleState = StateOf<typeof alertRuleLifecycle>;
export type AlertRuleEvent = EventOf<typeof alertRuleLifecycle>;
export type AlertRuleEffect = EffectOf<typeof alertRuleLifecycle>;
