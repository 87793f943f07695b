import { tokenResources } from "#access/credential/token-resources.ts";
import { defaultAllowedCidrsPart } from "#catalog/catalog-api.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { networkPolicies } from "#fleet/network-policy/policy-source.ts";
import { objectGrants } from "#fleet/object-grants.ts";
import { primaryLeaseRulesPart } from "#fleet/session/primary-leases.ts";
import { ownerKinds } from "#fleet/owner/owner-kind.ts";
import type { UseLater } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Contribution } from "#kernel/part.ts";
import { operationKind, operationSubjects } from "#operation/operation.ts";
import { resourceKinds } from "#resource-kind/resource-kind.ts";
import { archiveKind } from "./backup/archive/archive.ts";
import { backupContextPart, createBackupContext } from "./backup/backup-context.ts";
import { backupKeyKind } from "./backup/backup-key.ts";
import { backupKind } from "./backup/backup.ts";
import { drillKind } from "./backup/drill/drill.ts";
import { createBackupObjectGrants } from "./backup/objects/object-grants.ts";
import { databasesPart } from "./databases-part.ts";
import { createFilesKeyChanges } from "./files/files-key-changes.ts";
import { createServiceOwners } from "./machine-owners.ts";
import { createDatabaseKind, databaseKindName } from "./resource-kind/database-kind.ts";
import { createFilesKind, filesKindName } from "./resource-kind/files-kind.ts";
import { ownerKindOf } from "./monitored-services.ts";
import { managedServiceKind } from "./service/managed-service.ts";
import { createPrimaryLeaseRules } from "./service/member/primary-replicas/primary.ts";
import { createServiceAccess, serviceAccessPart } from "./service/service-access.ts";
import { createServiceNetworkPolicy } from "./service/network/service-network-policy.ts";
import type { ServicesSettings } from "./services-settings.ts";

/** Contributions of services to groups that come earlier in the import order, which cannot import services. */
export function contributeServices(
  kernel: Kernel,
  useLater: UseLater,
  { idleLogAfterS, finalBackupWithinS, defaultAllowedCidrs }: ServicesSettings,
): readonly Contribution[] {
  const { collections, sealer, clock, newId } = kernel;
  const services = collections.open(managedServiceKind);
  const machines = collections.open(machineKind);
  const archives = collections.open(archiveKind);
  const drills = collections.open(drillKind);
  const [fleet, databases] = [useLater(fleetPart), useLater(databasesPart)];
  const backups = createBackupContext({
    sealer,
    clock,
    services,
    backups: collections.open(backupKind),
    archives,
    backupKeys: collections.open(backupKeyKind),
    drills,
    idleLogDelayMs: Math.min(Math.max(idleLogAfterS, 1), 55) * 1_000,
    finalBackupTimeoutMs: finalBackupWithinS * 1_000,
    observation: (machineId) => fleet().fleet.observation(machineId),
  });
  const access = createServiceAccess({ services, operations: collections.open(operationKind) });
  return [
    serviceAccessPart.of(access),
    tokenResources.of({ kind: managedServiceKind.name, scope: "services", objects: services }),
    operationSubjects.of({
      kind: managedServiceKind.name,
      get: (id) => services.get(id),
      ownerKindOf: (id) => ownerKindOf(services.get(id)?.object),
    }),
    ownerKinds.of(...createServiceOwners({ services, drills })),
    networkPolicies.of(createServiceNetworkPolicy({ services, machines })),
    primaryLeaseRulesPart.of(createPrimaryLeaseRules(services)),
    backupContextPart.of(backups),
    objectGrants.of(...createBackupObjectGrants({ ...backups, services, archives })),
    resourceKinds.of(
      { kind: databaseKindName, create: () => createDatabaseKind({ ...databases(), sealer, clock, newId }) },
      {
        kind: filesKindName,
        create: () => {
          const keys = createFilesKeyChanges({ users: databases().users, sealer, clock, newId });
          return createFilesKind({ ...databases(), keys, clock, newId });
        },
      },
    ),
    defaultAllowedCidrsPart.of(defaultAllowedCidrs),
  ];
}
