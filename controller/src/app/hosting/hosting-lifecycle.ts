import { defineMachine, type EffectOf, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * The states of a hosted app. Once it is Running, a deployment is an operation that does not change the state: a failed
 * one disturbs nothing that serves.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const hostingLifecycle = defineMachine("app", [
  // from           event                  to              effect
  ["Pending",      "machinesCreated",     "Provisioning", "none"],
  ["Provisioning", "machinesReady",       "Deploying",    "none"],
  ["Provisioning", "deploymentFailed",    "Error",        "announceFailed"],
  ["Deploying",    "deployed",            "Running",      "announceDeployed"],
  ["Deploying",    "deploymentFailed",    "Error",        "announceFailed"],
  ["Running",      "becameUnhealthy",     "Error",        "announceFailed"],
  ["Running",      "stopped",             "Stopped",      "announceStopped"],
  ["Error",        "stopped",             "Stopped",      "announceStopped"],
  ["Stopped",      "startRequested",      "Provisioning", "none"],
  ["Error",        "becameHealthy",       "Running",      "none"],
  ["Error",        "deploymentStarted",   "Deploying",    "none"],
]);

export type HostingState = StateOf<typeof hostingLifecycle>;
export type HostingEvent = EventOf<typeof hostingLifecycle>;
export type HostingEffect = EffectOf<typeof hostingLifecycle>;
