import { defineMachine, type EffectOf, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * State table of a queue, with the states of the spec (2, Queue status). A deletion is possible in every state; at its
 * end the object and its name are deleted.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const queueLifecycle = defineMachine("queue", [
  // from             event              to                effect
  ["Pending",         "begun",           "Provisioning",   "none"],
  ["Pending",         "refused",         "Failed",         "announceFailed"],
  ["Pending",         "stuck",           "Failed",         "announceFailed"],
  ["Pending",         "deleteRequested", "Deprovisioning", "none"],
  ["Provisioning",    "registered",      "Active",         "announceActive"],
  ["Provisioning",    "refused",         "Failed",         "announceFailed"],
  ["Provisioning",    "stuck",           "Failed",         "announceFailed"],
  ["Provisioning",    "deleteRequested", "Deprovisioning", "none"],
  ["Active",          "refused",         "Failed",         "announceFailed"],
  ["Active",          "deleteRequested", "Deprovisioning", "none"],
  ["Active",          "foundDeleted",    "Deprovisioning", "none"],
  ["Failed",          "deleteRequested", "Deprovisioning", "none"],
  ["Deprovisioning",  "purged",          "Deprovisioning", "announceDeleted"],
  ["Deprovisioning",  "refused",         "Failed",         "announceFailed"],
]);

export type QueueState = StateOf<typeof queueLifecycle>;
export type QueueEvent = EventOf<typeof queueLifecycle>;
export type QueueEffect = EffectOf<typeof queueLifecycle>;
