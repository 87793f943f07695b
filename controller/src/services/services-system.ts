import { timestampMs } from "@bufbuild/protobuf/wkt";
import { createBootClock } from "@holdfast/common/boot-clock.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import { organizationKind } from "#access/organization/organization.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import { dnsRecordKind } from "#fleet/zone/dns-record.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import { createArchiveWork } from "./backup/archive-reconciler.ts";
import { archiveKind } from "./backup/archive.ts";
import { createBackupAdminApi } from "./backup/backup-admin-api.ts";
import { createBackupApi } from "./backup/backup-api.ts";
import { backupKeyKind } from "./backup/backup-key.ts";
import { createDescriptorWait, createDescriptorSyncWork } from "./backup/descriptor-sync-reconciler.ts";
import { descriptorSyncKind } from "./backup/descriptor-sync.ts";
import { backupMetrics } from "./backup/backup-metrics.ts";
import { createBackupWork } from "./backup/backup-reconciler.ts";
import { backupEventDefinitions } from "./backup/backup-event-definitions.ts";
import type { BackupContext } from "./backup/backup-context.ts";
import { backupKind } from "./backup/backup.ts";
import { createDrillWork } from "./backup/drill/drill-reconciler.ts";
import { createDrillSchedule } from "./backup/drill/drill-schedule.ts";
import { drillKind } from "./backup/drill/drill.ts";
import { createConfigurationApi } from "./configuration/configuration-api.ts";
import { createDatabaseApi } from "./contents/database-api.ts";
import { createDatabaseUserApi } from "./contents/database-user-api.ts";
import { createEngineChangeWork } from "./contents/change/engine-change-reconciler.ts";
import { engineChangeKind } from "./contents/change/engine-change.ts";
import { createEngineChanges } from "./contents/change/engine-changes.ts";
import { databaseUserKind, type DatabaseUserObject } from "./contents/user/database-user.ts";
import { rolloutRecordKind } from "./maintenance/rollout-record.ts";
import { createImageRegister } from "./maintenance/image-register.ts";
import { createMaintenanceAdminApi } from "./maintenance/maintenance-admin-api.ts";
import { createMaintenanceApi } from "./maintenance/maintenance-api.ts";
import { createRolloutLimiter } from "./maintenance/rollout-limiter.ts";
import { nodeImageKind } from "./maintenance/node-image.ts";
import { pendingSummaries } from "./maintenance/maintenance-message.ts";
import { createServiceMaintenance } from "./maintenance/settle-maintenance.ts";
import type { ResizeDeps } from "./scaling/resize-service.ts";
import { createEngineTasks, engineTimeoutMs } from "./service/engine-task.ts";
import { createInstanceDelivery } from "./service/instance-delivery.ts";
import { createForcedFailoverApi } from "./service/member/forced-failover-api.ts";
import { createNodeApi } from "./service/member/node-api.ts";
import { createManagedServiceApi, type ManagedServiceApiDeps } from "./service/managed-service-api.ts";
import { managedServiceKind, type ManagedServiceObject } from "./service/managed-service.ts";
import { managedServiceMessage } from "./service/managed-service-message.ts";
import { createNameVerification } from "./service/name-verification.ts";
import { createServiceCreation } from "./service/service-creation.ts";
import type { ServiceAccess } from "./service/service-access.ts";
import { serviceEventDefinitions } from "./service/service-event-definitions.ts";
import { createServiceLogs } from "./service/service-logs.ts";
import { createFenceOrders } from "./service/member/fence-orders.ts";
import { createFailureDetector } from "./service/member/failure-detector.ts";
import { createServiceWork } from "./service/service-work.ts";
import { createServicesSeams } from "./services-seams.ts";
import { type ServicesSettings, servicesSettings } from "./services-settings.ts";
import { servicesSchemaRules } from "./services-schema-rules.ts";

interface ServicesSystemDeps {
  readonly access: ServiceAccess;
  readonly quotas: Quotas;
  readonly fleet: FleetSystem;
  readonly backups: BackupContext;
}

/**
 * Managed services: their life cycle, users and databases, configuration, scaling, maintenance and backups.
 *
 * `service/` has the service itself: creation, its reconciler, members and failover. `contents/` changes users and
 * databases inside engines, `configuration/` engine parameters, `scaling/` the size. `maintenance/` replaces images,
 * `backup/` takes backups and restores them, and `engine/` has the facts of each engine. The parts meet in the
 * service's spec and status, and in operations.
 */
export const servicesSystem = declareSystem({
  name: "services",
  settings: servicesSettings,
  scopes: { services: { rights: ["read", "write", "secrets", "data"], completeFrom: "developer" } },
  events: { ...serviceEventDefinitions, ...backupEventDefinitions },
  audited: {
    "holdfast.v1.ManagedServiceService": "managed-service",
    "holdfast.v1.NodeService": "managed-service",
    "holdfast.v1.BackupService": "managed-service",
    "holdfast.v1.MaintenanceService": "managed-service",
    "holdfast.v1.ConfigurationService": "managed-service",
    "holdfast.v1.DatabaseService": "managed-service",
    "holdfast.v1.DatabaseUserService": "database-user",
    "holdfast.admin.v1.MaintenanceService": "node-image",
    "holdfast.admin.v1.FailoverService": "managed-service",
    "holdfast.admin.v1.BackupService": "managed-service",
  },
  seams: createServicesSeams,
  open: openServicesSystem,
});

/** Parts with which other groups create, change and delete services. */
export type DatabaseParts = ResizeDeps &
  Pick<ManagedServiceApiDeps, "services" | "operations" | "creation" | "engines"> & {
    readonly users: Collection<DatabaseUserObject>;
  };

function openServicesSystem(
  kernel: Kernel,
  deps: ServicesSystemDeps,
  settings: ServicesSettings,
): System<{ readonly databases: DatabaseParts }> {
  const { collections, automationPauses, outbox, authority, cursors, clock } = kernel;
  const { access, quotas, backups } = deps;
  const { fleet, provider, machines, hosts, zone, warmPool, offers, awaitNames } = deps.fleet;
  const services = collections.open(managedServiceKind);
  const operations = collections.open(operationKind);
  const organizations = collections.open(organizationKind);
  const users = collections.open(databaseUserKind);
  const changeObjects = collections.open(engineChangeKind);
  const nodeImages = collections.open(nodeImageKind);
  const rolloutRecords = collections.open(rolloutRecordKind);
  const records = collections.open(dnsRecordKind);
  const backupDeps = {
    ...backups,
    backups: collections.open(backupKind),
    archives: collections.open(archiveKind),
    backupKeys: collections.open(backupKeyKind),
    drills: collections.open(drillKind),
    restoreSource: backups.serviceBackups.restoreSource,
    upSince(service: ManagedServiceObject) {
      const instance = fleet.observation(service.status.primaryNodeId)?.instance;
      return instance?.state === "running" && instance.since !== undefined ? timestampMs(instance.since) : undefined;
    },
    expiryDeferred: () => automationPauses.list("deletion").length > 0,
    firstBackupAfterMs: settings.firstBackupAfterS * 1_000,
    finalBackupWithinMs: settings.finalBackupWithinS * 1_000,
  };
  const all = {
    ...kernel,
    ...offers,
    services,
    operations,
    organizations,
    users,
    nodeImages,
    rolloutRecords,
    records,
    access,
    quotas,
    restorePointOf: backups.serviceBackups.restorePointOf,
    fleet,
    machines,
    hosts,
    zone,
    warmPool,
    domain: deps.fleet.domain,
    defaultAllowedCidrs: settings.defaultAllowedCidrs,
  };
  const tasks = createEngineTasks(all);
  const descriptorSyncs = collections.open(descriptorSyncKind);
  const awaitDescriptor = createDescriptorWait({ ...all, ...backupDeps, descriptorSyncs });
  const changes = createEngineChanges({
    ...all,
    changes: changeObjects,
    waitMs: engineTimeoutMs,
    awaitDescriptor,
  });
  const rolloutLimiter = createRolloutLimiter({ ...all, now: clock.now });
  const pendingOf = (service: ManagedServiceObject) => pendingSummaries(service, all);
  const { backupsOf } = backups;
  const serviceMessage = (service: ManagedServiceObject, operation: OperationObject | undefined) =>
    managedServiceMessage(service, operation, pendingOf(service), backupsOf(service));
  const creation = createServiceCreation({ ...all, serviceMessage });
  const maintenancePaused = () => automationPauses.list("maintenance").length > 0;
  return {
    name: "services",
    gives: { databases: { ...all, creation } },
    serviceGauges: backupMetrics(backupDeps.backups),
    schemaRules: servicesSchemaRules,
    rpcs: [
      createManagedServiceApi({
        ...all,
        creation,
        serviceMessage,
        backupsOf,
        deleted: backups.deleted,
        logs: createServiceLogs({ fleet, cursors }),
        trustBundle: () => authority.trustBundle,
        pendingOf,
      }),
      createNodeApi(all),
      createForcedFailoverApi(all),
      createBackupApi({ ...all, ...backupDeps, creation }),
      createMaintenanceApi({ ...all, tasks, maintenancePaused }),
      createMaintenanceAdminApi(all),
      createBackupAdminApi({ ...all, ...backupDeps }),
      createDatabaseUserApi({ ...all, tasks, changes, auditNow: outbox.auditNow }),
      createDatabaseApi({ ...all, tasks, changes }),
      createConfigurationApi({ ...all, waitMs: engineTimeoutMs }),
    ],
    work: [
      createServiceWork({
        ...all,
        changes: changeObjects,
        fences: createFenceOrders({ provider, clock, log: kernel.log }),
        failureDetector: createFailureDetector(fleet, kernel.controllerRegistry.id, createBootClock()),
        names: createNameVerification(awaitNames),
        maintenance: createServiceMaintenance({ ...all, rolloutLimiter }),
        delivery: createInstanceDelivery(all),
        backups: backups.serviceBackups,
        backupObjects: backupDeps.backups,
        expiryDeferred: () => automationPauses.list("deletion").length > 0,
        clockJumped: () => automationPauses.list().some(({ kind }) => kind === "clock"),
      }),
      createBackupWork({ ...all, ...backupDeps }),
      createArchiveWork({ ...all, ...backupDeps }),
      createDescriptorSyncWork({ ...all, ...backupDeps, descriptorSyncs }),
      createDrillWork({ ...all, ...backupDeps, delivery: createInstanceDelivery(all) }),
      createDrillSchedule({ ...all, ...backupDeps }),
      createEngineChangeWork({ ...all, changes: changeObjects }),
      createImageRegister(all),
    ],
  };
}
