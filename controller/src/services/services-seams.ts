import type { FleetSystem } from "#fleet/fleet-system.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import type { ObjectUrlGrants } from "#fleet/object-urls.ts";
import type { PolicySource } from "#fleet/network-policy/policy-source.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { operationKind } from "#operation/operation.ts";
import { archiveKind } from "./backup/archive.ts";
import { backupKeyKind } from "./backup/backup-key.ts";
import { type BackupContext, createBackupContext } from "./backup/backup-context.ts";
import { backupKind } from "./backup/backup.ts";
import { drillKind } from "./backup/drill/drill.ts";
import { createObjectUrls } from "./backup/object-urls.ts";
import { managedServiceKind, type ManagedServiceObject } from "./service/managed-service.ts";
import { createServiceAccess, type ServiceAccess } from "./service/service-access.ts";
import type { PrimaryLeaseRules } from "#fleet/session/primary-leases.ts";
import { createPrimaryLeaseRules } from "./service/member/primary-lease-rules.ts";
import { createServiceNetworkPolicy } from "./service/service-network-policy.ts";
import type { ServicesSettings } from "./services-settings.ts";

/** Parts of the services group that lower groups use. */
export interface ServicesSeams {
  readonly services: Collection<ManagedServiceObject>;
  readonly access: ServiceAccess;
  readonly backups: BackupContext;
  /** Collections of the objects that operations are about, by the name of their kind. */
  readonly subjects: Readonly<Record<string, Collection<ManagedServiceObject>>>;
  readonly policySources: readonly PolicySource[];
  readonly urlGrants: ObjectUrlGrants | undefined;
  readonly primaryLeaseRules: PrimaryLeaseRules;
  readonly defaultAllowedCidrs: readonly string[];
}

export function createServicesSeams(
  kernel: Kernel,
  { idleLogAfterS, finalBackupWithinS, defaultAllowedCidrs }: ServicesSettings,
  below: () => { readonly fleet: Pick<FleetSystem, "fleet"> },
): ServicesSeams {
  const { collections, objectUrls: signer } = kernel;
  const services = collections.open(managedServiceKind);
  const machines = collections.open(machineKind);
  const archives = collections.open(archiveKind);
  const backups = createBackupContext({
    ...kernel,
    services,
    backups: collections.open(backupKind),
    archives,
    backupKeys: collections.open(backupKeyKind),
    drills: collections.open(drillKind),
    idleLogAfterMs: Math.min(Math.max(idleLogAfterS, 1), 55) * 1_000,
    finalBackupWithinMs: finalBackupWithinS * 1_000,
    observation: (machineId) => below().fleet.fleet.observation(machineId),
  });
  return {
    services,
    access: createServiceAccess({ services, operations: collections.open(operationKind) }),
    backups,
    subjects: { [managedServiceKind.name]: services },
    policySources: [createServiceNetworkPolicy({ services, machines })],
    primaryLeaseRules: createPrimaryLeaseRules(services),
    urlGrants: signer && createObjectUrls({ ...kernel, ...backups, machines, services, archives, signer }),
    defaultAllowedCidrs,
  };
}
