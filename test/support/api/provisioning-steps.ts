/** Of a restore or fork, in their order (spec 1, States). */
export const provisioningSteps = [
  "SetupNetwork",
  "SetupServer",
  "SetupAgent",
  "SetupDNS",
  "ProvisioningRestore",
  "ProvisioningHealth",
];
