/** Steps of a restore or fork, in order (spec 1, States). */
export const provisioningSteps = [
  "SetupNetwork",
  "SetupServer",
  "SetupAgent",
  "SetupDNS",
  "ProvisioningRestore",
  "ProvisioningHealth",
];
