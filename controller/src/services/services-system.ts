import { timestampMs } from "@bufbuild/protobuf/wkt";
import { createBootClock } from "@holdfast/common/boot-clock.ts";
import { organizationKind } from "#access/organization/organization.ts";
import { quotasPart } from "#access/organization/quotas.ts";
import { offersPart } from "#catalog/catalog-api.ts";
import { createMonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import { ownerKinds } from "#fleet/owner/owner-kind.ts";
import { createOwnerLogs } from "#fleet/owner/owner-logs.ts";
import { createWorkloadDelivery } from "#fleet/task/workload-delivery.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import { untilHostsReport } from "#fleet/host/reported-hosts.ts";
import { dnsRecordKind } from "#fleet/zone/dns-record.ts";
import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import { createArchiveWork } from "./backup/archive/archive-reconciler.ts";
import { archiveKind } from "./backup/archive/archive.ts";
import { createBackupAdminApi } from "./backup/backup-admin-api.ts";
import { createBackupApi } from "./backup/backup-api.ts";
import { backupKeyKind } from "./backup/backup-key.ts";
import { createDescriptorWait, createDescriptorSyncWork } from "./backup/objects/descriptor-sync-reconciler.ts";
import { descriptorSyncKind } from "./backup/objects/descriptor-sync.ts";
import { backupMetrics } from "./backup/backup-metrics.ts";
import { createBackupWork } from "./backup/backup-reconciler.ts";
import { backupEventDefinitions } from "./backup/backup-event-definitions.ts";
import { backupContextPart } from "./backup/backup-context.ts";
import { backupKind } from "./backup/backup.ts";
import { createDrillWork } from "./backup/drill/drill-reconciler.ts";
import { createDrillSchedule } from "./backup/drill/drill-schedule.ts";
import { drillKind } from "./backup/drill/drill.ts";
import { createConfigurationApi } from "./configuration/configuration-api.ts";
import { createConsumerGroupApi } from "./contents/consumer-group-api.ts";
import { createDatabaseApi } from "./contents/database-api.ts";
import { createIndexApi } from "./contents/index-api.ts";
import { createTopicApi } from "./contents/topic-api.ts";
import { createDatabaseUserApi } from "./contents/database-user-api.ts";
import { createEngineChangeWork } from "./contents/change/engine-change-reconciler.ts";
import { engineChangeKind } from "./contents/change/engine-change.ts";
import { createEngineChanges } from "./contents/change/engine-changes.ts";
import { createAttachedLoginWork } from "./contents/user/attached-login-reconciler.ts";
import { databaseUserKind } from "./contents/user/database-user.ts";
import { rolloutRecordKind } from "./maintenance/rollout-record.ts";
import { createImageInventory } from "./maintenance/image-inventory.ts";
import { createMaintenanceAdminApi } from "./maintenance/maintenance-admin-api.ts";
import { createMaintenanceApi } from "./maintenance/maintenance-api.ts";
import { createRolloutLimiter } from "./maintenance/rollout-limiter.ts";
import { nodeImageKind } from "./maintenance/node-image.ts";
import { pendingSummaries } from "./maintenance/maintenance-message.ts";
import type { MaintenanceContextDeps } from "./maintenance/maintenance-context.ts";
import { createServiceMaintenance } from "./maintenance/settle-maintenance.ts";
import { databasesPart } from "./databases-part.ts";
import type { ResizeDeps } from "./scaling/resize-service.ts";
import { createEngineTasks, engineTimeoutMs } from "./service/engine-task.ts";
import { createForcedFailoverApi } from "./service/member/primary-replicas/failover/forced-failover-api.ts";
import { createNodeApi } from "./service/member/node-api.ts";
import { createManagedServiceApi } from "./service/managed-service-api.ts";
import { managedServiceKind, type ManagedServiceObject } from "./service/managed-service.ts";
import { managedServiceMessage } from "./service/managed-service-message.ts";
import { createNameVerification } from "./service/network/name-verification.ts";
import { createServiceCreation } from "./service/service-creation.ts";
import { createServiceAccess, serviceAccessPart } from "./service/service-access.ts";
import { serviceConsumers } from "./service/service-consumers.ts";
import { serviceEventDefinitions } from "./service/service-event-definitions.ts";
import { createFenceOrders } from "./service/member/primary-replicas/failover/fence-orders.ts";
import { createFailureDetector } from "./service/member/primary-replicas/failover/failure-detector.ts";
import { createServiceWork } from "./service/reconcile/service-work.ts";
import { contributeServices } from "./contribute-services.ts";
import { type ServicesSettings, servicesSettings } from "./services-settings.ts";
import { servicesSchemaRules } from "./services-schema-rules.ts";
import { operationTypes } from "#operation/operation-definition.ts";
import { backupOperations } from "./backup/backup-operations.ts";
import { engineOperations } from "./contents/change/engine-operations.ts";
import { createFilesApi } from "./files/files-api.ts";
import { serviceOperations } from "./service/service-operations.ts";
import { taskTarget } from "./service/member/member-roles.ts";

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
  scopes: {
    services: { verbs: ["read", "write", "secrets", "data"], completeFrom: "developer" },
    files: { verbs: ["read", "write"], completeFrom: "developer" },
  },
  events: { ...serviceEventDefinitions, ...backupEventDefinitions },
  audited: {
    "holdfast.v1.ManagedServiceService": "managed-service",
    "holdfast.v1.NodeService": "managed-service",
    "holdfast.v1.BackupService": "managed-service",
    "holdfast.v1.MaintenanceService": "managed-service",
    "holdfast.v1.ConfigurationService": "managed-service",
    "holdfast.v1.ConsumerGroupService": "managed-service",
    "holdfast.v1.DatabaseService": "managed-service",
    "holdfast.v1.IndexService": "managed-service",
    "holdfast.v1.TopicService": "managed-service",
    "holdfast.v1.FilesService": "managed-service",
    "holdfast.v1.DatabaseUserService": "database-user",
    "holdfast.admin.v1.MaintenanceService": "node-image",
    "holdfast.admin.v1.FailoverService": "managed-service",
    "holdfast.admin.v1.BackupService": "managed-service",
  },
  declares: [
    operationTypes.of(
      ...Object.values(serviceOperations),
      ...Object.values(engineOperations),
      ...Object.values(backupOperations),
    ),
  ],
  provides: [databasesPart],
  contribute: contributeServices,
  open: openServicesSystem,
});

function openServicesSystem(kernel: Kernel, use: Use, settings: ServicesSettings): System {
  const { collections, automationPauses, controllerRegistry, authority, objects, keyring, sealer, cursors } = kernel;
  const { begin, auditedActs, newId, random, clock, log } = kernel;
  const { fleet, provider, machines, hosts, zone, warmPool, domain, awaitNames } = use(fleetPart);
  const { catalog, engines } = use(offersPart);
  const databaseEngines = () => engines().filter(({ family }) => family === "databases");
  const [access, quotas, views] = [use(serviceAccessPart), use(quotasPart), use(backupContextPart)];
  const { index, drillIndex, liveArchive, readersOf, backupsOf, serviceBackups } = views;
  const { newestRestorePointOf, restoreSource } = serviceBackups;
  const consumers = use(serviceConsumers);
  const hostsReported = (signal: AbortSignal) => untilHostsReport(hosts, signal);
  const services = collections.open(managedServiceKind);
  const operations = collections.open(operationKind);
  const organizations = collections.open(organizationKind);
  const users = collections.open(databaseUserKind);
  const changeObjects = collections.open(engineChangeKind);
  const nodeImages = collections.open(nodeImageKind);
  const rolloutRecords = collections.open(rolloutRecordKind);
  const records = collections.open(dnsRecordKind);
  const backups = collections.open(backupKind);
  const archives = collections.open(archiveKind);
  const backupKeys = collections.open(backupKeyKind);
  const drills = collections.open(drillKind);
  const descriptorSyncs = collections.open(descriptorSyncKind);

  const expiryDeferred = () => automationPauses.list("deletion").length > 0;
  const maintenancePaused = () => automationPauses.list("maintenance").length > 0;
  const clockJumped = () => automationPauses.list().some(({ kind }) => kind === "clock");
  const pendingOf = (service: ManagedServiceObject) => pendingSummaries(service, { ...updates, clock });
  const serviceMessage = (service: ManagedServiceObject, operation: OperationObject | undefined) =>
    managedServiceMessage(service, operation, pendingOf(service), backupsOf(service));
  const upSince = (service: ManagedServiceObject) => {
    const instance = fleet.observation(taskTarget(service).id)?.instance;
    return instance?.state === "running" && instance.since !== undefined ? timestampMs(instance.since) : undefined;
  };

  /** Dependencies of every change of a service that has an operation. */
  const changing = { begin, newId, clock, services, operations };
  const updates: MaintenanceContextDeps = { nodeImages, machines, hosts, fleet, newestRestorePointOf };
  const resizing: ResizeDeps = { archives, machines, hosts, quotas, catalog, fleet, clock, newId };
  const drilling = { drills, drillIndex, archives, index, liveArchive, upSince, random, newId, clock };
  const waitMs = engineTimeoutMs;
  const tasks = createEngineTasks({ fleet, services, clock });
  const awaitDescriptor = createDescriptorWait({ services, users, organizations, index, descriptorSyncs, archives });
  const changes = createEngineChanges({
    ...changing,
    changes: changeObjects,
    users,
    access,
    fleet,
    awaitDescriptor,
    waitMs,
  });
  const creation = createServiceCreation({
    ...changing,
    organizations,
    quotas,
    warmPool,
    catalog,
    engines,
    domain,
    defaultAllowedCidrs: settings.defaultAllowedCidrs,
    hosts,
    serviceMessage,
    sealer,
  });
  const rolloutLimiter = createRolloutLimiter({ ...changing, rolloutRecords, automationPauses, now: clock.now });
  const maintenance = createServiceMaintenance({ ...changing, ...updates, rolloutLimiter, log });
  const delivery = createWorkloadDelivery({ fleet, log });
  const ofServices = {
    ...changing,
    ...resizing,
    creation,
    fleet,
    sealer,
    cursors,
    serviceMessage,
    pendingOf,
    backupsOf,
    deleted: views.deleted,
    logs: createOwnerLogs({ fleet, cursors }),
    monitoredOwners: createMonitoredOwners(use(ownerKinds)),
    trustBundle: () => authority.trustBundle,
    consumers,
  };
  return {
    name: "services",
    provides: [
      databasesPart.of({ ...resizing, services, operations, users, engines, creation, consumers, hostsReported }),
    ],
    serviceGauges: backupMetrics(backups),
    schemaRules: servicesSchemaRules,
    rpcs: [
      createManagedServiceApi({ ...ofServices, family: "databases", access, engines: databaseEngines }),
      createFilesApi({
        ...ofServices,
        access: createServiceAccess({ services, operations, family: "files" }),
        engines,
        hostsReported,
        users,
        archives,
        machines,
        index,
        liveArchive,
        readersOf,
        log,
      }),
      createNodeApi({ ...changing, access, quotas, catalog, sealer, fleet }),
      createForcedFailoverApi({ ...changing, fleet }),
      createBackupApi({
        ...changing,
        ...drilling,
        access,
        backups,
        backupKeys,
        creation,
        users,
        readersOf,
        machines,
        sealer,
        cursors,
        consumers,
        log,
      }),
      createMaintenanceApi({ ...changing, ...updates, access, tasks, maintenancePaused }),
      createMaintenanceAdminApi({ ...changing, ...updates, hosts, cursors }),
      createBackupAdminApi({
        archives,
        backups,
        services,
        index,
        liveArchive,
        readersOf,
        expiryDeferred,
        objects,
        cursors,
        clock,
      }),
      createDatabaseUserApi({ users, access, tasks, changes, cursors, sealer, clock, auditedActs }),
      createDatabaseApi({ access, tasks, changes, cursors, consumers }),
      createIndexApi({ access, tasks, cursors, auditedActs }),
      createTopicApi({ access, tasks, cursors, catalog, auditedActs }),
      createConsumerGroupApi({ access, tasks, cursors, auditedActs }),
      createConfigurationApi({ ...changing, access, fleet, catalog, engines, waitMs }),
    ],
    work: [
      createServiceWork({
        ...changing,
        machines,
        hosts,
        nodeImages,
        records,
        users,
        changes: changeObjects,
        zone,
        catalog,
        quotas,
        archives,
        fleet,
        sealer,
        automationPauses,
        fences: createFenceOrders({ provider, clock, log }),
        failureDetector: createFailureDetector(fleet, controllerRegistry.id, createBootClock()),
        names: createNameVerification(awaitNames),
        maintenance,
        delivery,
        backups: serviceBackups,
        backupObjects: backups,
        expiryDeferred,
        clockJumped,
        log,
      }),
      createAttachedLoginWork({ users, services, tasks, begin, log }),
      createBackupWork({ ...changing, backups, index, archives, backupKeys, machines, fleet, objects, sealer, log }),
      createArchiveWork({
        ...changing,
        archives,
        backups,
        backupKeys,
        index,
        drills,
        drillIndex,
        fleet,
        organizations,
        machines,
        readersOf,
        expiryDeferred,
        objects,
        firstBackupDelayMs: settings.firstBackupAfterS * 1_000,
        finalBackupTimeoutMs: settings.finalBackupWithinS * 1_000,
        sealer,
        catalog,
        log,
      }),
      createDescriptorSyncWork({
        descriptorSyncs,
        services,
        users,
        archives,
        backups,
        organizations,
        index,
        objects,
        keyring,
        begin,
        clock,
        log,
      }),
      createDrillWork({
        ...changing,
        drills,
        drillIndex,
        machines,
        hosts,
        fleet,
        delivery,
        restoreSource,
        catalog,
        log,
      }),
      createDrillSchedule({ ...drilling, services, begin, log }),
      createEngineChangeWork({ ...changing, changes: changeObjects, users, fleet, log }),
      createImageInventory({ hosts, nodeImages, machines, begin, clock, log }),
    ],
  };
}
