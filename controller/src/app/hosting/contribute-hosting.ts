import { fleetPart } from "#fleet/fleet-system.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { networkPolicies } from "#fleet/network-policy/policy-source.ts";
import { type OwnerKind, ownerKinds } from "#fleet/owner/owner-kind.ts";
import type { UseLater } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Contribution } from "#kernel/part.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { operationSubjects } from "#operation/operation.ts";
import { type AppObject, appKind } from "../app/app.ts";
import type { IngressSettings } from "../ingress/contribute-ingress.ts";
import { createAppPolicy } from "./app-policy.ts";
import { createAppMonitoring } from "./monitored-app.ts";
import type { PlatformApiSettings } from "./platform-api.ts";

/** Apps as owners of machines: their answers to drains and lost hosts, their rules for traffic, their operations. */
export function contributeHosting(
  { collections }: Kernel,
  useLater: UseLater,
  {
    ingressFrom: ingresses,
    platformApiAddresses: addresses,
    platformApiPort: port,
  }: IngressSettings & PlatformApiSettings,
): readonly Contribution[] {
  const apps = collections.open(appKind);
  const fleet = useLater(fleetPart);
  return [
    ownerKinds.of(createAppOwners(apps, (machineId) => fleet().fleet.observation(machineId))),
    networkPolicies.of(createAppPolicy(apps, collections.open(machineKind), { ingresses, api: { addresses, port } })),
    operationSubjects.of({ kind: appKind.name, get: (id) => apps.get(id) }),
  ];
}

function createAppOwners(
  apps: Collection<AppObject>,
  observationOf: Parameters<typeof createAppMonitoring>[1],
): OwnerKind {
  return {
    kind: appKind.name,
    noun: "app",
    remedy: "Delete",
    describe(id) {
      const app = apps.get(id)?.object;
      return app && { name: app.metadata.name, organizationId: app.metadata.organizationId };
    },
    // Everything on a machine comes from the registry and from the store.
    isReplaceable: () => true,
    onHostLost: () => "deletes",
    drain: (_, { hasOthers }) => ({
      outcome: "moves",
      reason: hasOthers ? "Its other machine starts." : "Its app gets another machine, once a host has capacity.",
    }),
    monitoring: createAppMonitoring(apps, observationOf),
  };
}
