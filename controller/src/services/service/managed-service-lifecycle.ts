import { defineMachine, type EffectOf, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * The life cycle of a managed service (spec 1, States and transitions). A deletion is possible in each state and
 * removes the service, so it has no row. Upgrading is a change of the engine's version or image with the same data;
 * after a rollback the service is Running with the old one.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const managedServiceLifecycle = defineMachine("managed-service", [
  // from           event                  to              effect
  ["Pending",       "provisioningStarted", "Provisioning", "none"],
  ["Pending",       "provisioningFailed",  "Error",        "announceError"],
  ["Provisioning",  "becameHealthy",       "Running",      "announceRunning"],
  ["Provisioning",  "provisioningFailed",  "Error",        "announceError"],
  ["Provisioning",  "stopped",             "Stopped",      "announceStopped"],
  ["Running",       "stopped",             "Stopped",      "announceStopped"],
  ["Running",       "failed",              "Error",        "announceError"],
  ["Running",       "upgradeStarted",      "Upgrading",    "none"],
  ["Upgrading",     "upgradeEnded",        "Running",      "none"],
  ["Upgrading",     "failed",              "Error",        "announceError"],
  ["Upgrading",     "stopped",             "Stopped",      "announceStopped"],
  ["Stopped",       "startRequested",      "Provisioning", "none"],
  ["Stopped",       "failed",              "Error",        "announceError"],
  ["Error",         "startRequested",      "Provisioning", "none"],
  ["Error",         "becameHealthy",       "Running",      "announceRunning"],
  ["Error",         "stopped",             "Stopped",      "announceStopped"],
]);

export type ManagedServiceState = StateOf<typeof managedServiceLifecycle>;
export type ManagedServiceEvent = EventOf<typeof managedServiceLifecycle>;
export type ManagedServiceEffect = EffectOf<typeof managedServiceLifecycle>;
