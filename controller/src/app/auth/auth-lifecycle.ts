import { defineMachine, type EffectOf, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * States of an app's sign-in, from the spec (2, Auth status). The id of the sign-in remains in Failed and Disabled.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const authLifecycle = defineMachine("app-auth", [
  // from                 event              to                    effect
  ["ProvisioningSchema", "provisioned",     "Active",             "announceEnabled"],
  ["ProvisioningSchema", "stuck",           "Failed",             "announceFailed"],
  ["ProvisioningSchema", "refused",         "Failed",             "announceFailed"],
  ["Active",             "disableRequested", "Disabled",           "announceDisabled"],
  ["Failed",             "disableRequested", "Disabled",           "announceDisabled"],
  ["Failed",             "enableRequested", "ProvisioningSchema", "none"],
  ["Disabled",           "enableRequested", "ProvisioningSchema", "none"],
]);

export type AuthState = StateOf<typeof authLifecycle>;
export type AuthEvent = EventOf<typeof authLifecycle>;
export type AuthEffect = EffectOf<typeof authLifecycle>;
