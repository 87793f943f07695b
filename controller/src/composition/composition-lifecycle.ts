import { defineMachine, type EffectOf, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * State table of a composition: a project, a stack or the services of a pipeline. The states are defined by spec 3
 * (Project status, Stack status). A Deleted project remains visible for 30 days; stacks and pipelines are removed. A
 * pipeline never fails: it retries.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const compositionLifecycle = defineMachine("composition", [
  // from            event              to              effect
  ["Pending",        "begun",           "Provisioning", "none"],
  ["Pending",        "failedFirst",     "RollingBack",  "none"],
  ["Pending",        "failedLater",     "Failed",       "announceFailed"],
  ["Pending",        "deleteRequested", "Deleting",     "none"],
  ["Provisioning",   "allRunning",      "Wiring",       "none"],
  ["Provisioning",   "failedFirst",     "RollingBack",  "none"],
  ["Provisioning",   "failedLater",     "Failed",       "announceFailed"],
  ["Provisioning",   "deleteRequested", "Deleting",     "none"],
  ["Wiring",         "wired",           "Running",      "announceRunning"],
  ["Wiring",         "failedFirst",     "RollingBack",  "none"],
  ["Wiring",         "failedLater",     "Failed",       "announceFailed"],
  ["Wiring",         "deleteRequested", "Deleting",     "none"],
  ["RollingBack",    "cleared",         "Failed",       "announceFailed"],
  ["RollingBack",    "deleteRequested", "Deleting",     "none"],
  ["Running",        "deployRequested", "Pending",      "none"],
  ["Running",        "upgradeRequested","Upgrading",    "none"],
  ["Running",        "deleteRequested", "Deleting",     "none"],
  ["Upgrading",      "upgraded",        "Running",      "announceUpgraded"],
  ["Upgrading",      "upgradeFailed",   "Running",      "none"],
  ["Upgrading",      "deleteRequested", "Deleting",     "none"],
  ["Failed",         "deployRequested", "Pending",      "none"],
  ["Failed",         "deleteRequested", "Deleting",     "none"],
  ["Deleting",       "cleared",         "Deleted",      "announceDeleted"],
]);

export type CompositionState = StateOf<typeof compositionLifecycle>;
export type CompositionEvent = EventOf<typeof compositionLifecycle>;
export type CompositionEffect = EffectOf<typeof compositionLifecycle>;
