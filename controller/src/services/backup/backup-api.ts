import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type BackupKey, BackupKeySchema, BackupService } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import { serviceSubject } from "../service/managed-service.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { mutate } from "#access/mutate.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { createBackupAccess } from "./backup-access.ts";
import { type BackupCreation, newBackup } from "./backup-creation.ts";
import { type BackupIndex, backupKind, type BackupObject, hasEnded, isVisible } from "./backup.ts";
import {
  backupKeyKind,
  type BackupKeyObject,
  currentVersion,
  keyLifetimeMs,
  newBackupKey,
  rotated,
} from "./backup-key.ts";
import { backupMessage, backupTypeOf } from "./backup-message.ts";
import { refuseBackup, refuseBeyondQuota, requireCompleted } from "./backup-requests.ts";
import { createRestoreHandlers, type RestoreApiDeps } from "./restore/restore-api.ts";
import { createDrillHandlers, type DrillApiDeps } from "./drill/drill-api.ts";
import { createSettingsHandlers } from "./backup-settings-api.ts";
import { settingsOf } from "./archive/archive.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { backupOperations } from "./backup-operations.ts";

export interface BackupApiDeps extends BackupCreation, RestoreApiDeps, DrillApiDeps {
  readonly begin: () => UnitOfWork;
  readonly backups: Collection<BackupObject>;
  readonly index: BackupIndex;
  readonly operations: Collection<OperationObject>;
  readonly access: ServiceAccess;
  readonly cursors: Cursors;
}

/** The RPCs of backups. They write objects; reconcilers send tasks to the machines. */
export function createBackupApi(deps: BackupApiDeps): ServedService {
  const { archives, backups, backupKeys, operations, index, clock } = deps;
  const access = createBackupAccess(deps);

  const message = (backup: BackupObject) => {
    const { serviceId } = backup.spec;
    const others = index.of(serviceId).map(({ object }) => object);
    return backupMessage(backup, others, settingsOf(serviceId, archives.get(serviceId)?.object), clock.now());
  };
  const see = [archives, backups, operations];

  const handlers: Handlers<typeof BackupService> = {
    listBackups: async (request, call) => {
      const { serviceId, status } = request;
      access.owner(serviceId, call);
      const type = backupTypeOf(request.type);
      const state = status?.toLowerCase();
      const page = deps.cursors.open(call, "backups", [serviceId, type, state], request);
      const newest = index
        .of(serviceId)
        .map(({ object }) => object)
        .filter(
          (backup) =>
            isVisible(backup) &&
            (type === undefined || backup.spec.backupType === type) &&
            (state === undefined || backup.status.state === state) &&
            (page.after === undefined || backup.metadata.id < page.after),
        )
        .toReversed();
      const items = newest.slice(0, page.limit);
      const next = newest.length > items.length ? items.at(-1)?.metadata.id : undefined;
      return { backups: items.map(message), ...page.next(next) };
    },

    createBackup: async ({ serviceId }, call) => {
      const created = await mutate(
        deps,
        call,
        { action: "backup.create", kind: "backup", visibleIn: see },
        async (unit) => {
          const { object: service } = deps.access.require(serviceId, call);
          const { backup, operation } = newBackup(unit, service, { backupType: "manual", trigger: "request" }, deps);
          refuseBackup(service);
          // Wait for backups of concurrent requests, which changed the archive, so that the quota counts them.
          await backups.untilRevision(archives.get(serviceId)?.modRevision ?? 0n, 1_000);
          refuseBeyondQuota(index.of(serviceId).map(({ object }) => object));
          const { id } = backup.metadata;
          const response = message(backup);
          return { id, result: { response, id, operation: operation.metadata.id }, stored: response };
        },
      );
      deps.log.info("backup requested", { service: serviceId, backup: created.id, operation: created.operation });
      return created.response;
    },

    getBackup: async ({ serviceId, backupId }, call) => message(access.backup(serviceId, backupId, call).backup.object),

    deleteBackup: ({ serviceId, backupId }, call) =>
      mutate(deps, call, { action: "backup.delete", kind: "backup", visibleIn: see }, async (unit) => {
        const { backup } = access.backup(serviceId, backupId, call);
        const { object } = backup;
        if (object.spec.backupType === "automated")
          throw new HoldfastError("WRONG_STATE", "Automated backups are deleted by their retention.");
        if (!hasEnded(object))
          throw new HoldfastError("WRONG_STATE", `The backup is ${object.status.state}; cancel it first.`);
        refuseInUse(object);
        const now = clock.now();
        unit.update(backupKind, backup, {
          ...object,
          metadata: { ...object.metadata, deletionRequestedAt: now, updatedAt: now },
        });
        const response = create(EmptySchema);
        return { id: backupId, response };
      }),

    verifyBackup: ({ serviceId, backupId }, call) =>
      mutate(deps, call, { action: "backup.verify", kind: "backup", visibleIn: see }, async (unit) => {
        const { backup } = access.backup(serviceId, backupId, call);
        const { object } = backup;
        requireCompleted(object);
        // A verification in progress reads the same bytes, so its result applies to this request too.
        if (object.spec.verification !== null) return { unchanged: message(object) };
        const { organizationId } = object.metadata;
        const of = { id: deps.newId(), subject: serviceSubject(serviceId), organizationId, now: clock.now() };
        const operation = newOperation({ ...of, type: backupOperations.verify_backup });
        const after = withSpec(object, { verification: operation.metadata.id }, clock.now());
        unit.create(operationKind, operation);
        unit.update(backupKind, backup, after);
        const response = message(after);
        return { id: backupId, response };
      }),

    cancelBackup: ({ serviceId, backupId }, call) =>
      mutate(deps, call, { action: "backup.cancel", kind: "backup", visibleIn: see }, async (unit) => {
        const { backup } = access.backup(serviceId, backupId, call);
        const { object } = backup;
        if (hasEnded(object)) throw new HoldfastError("WRONG_STATE", `The backup is ${object.status.state} already.`);
        if (object.spec.cancelRequested) return { unchanged: message(object) };
        const after = withSpec(object, { cancelRequested: true }, clock.now());
        unit.update(backupKind, backup, after);
        const response = message(after);
        return { id: backupId, response };
      }),

    rotateBackupKey: ({ serviceId }, call) =>
      mutate(deps, call, { action: "backup-key.rotate", kind: "backup-key", visibleIn: [backupKeys] }, async (unit) => {
        const { object: service } = deps.access.require(serviceId, call);
        const now = clock.now();
        const key = backupKeys.get(serviceId);
        const after =
          key === undefined
            ? newBackupKey(serviceId, service.metadata.organizationId, deps.sealer, now)
            : rotated(key.object, deps.sealer, now);
        if (key === undefined) unit.create(backupKeyKind, after);
        else unit.update(backupKeyKind, key, after);
        const response = keyMessage(after);
        return { id: serviceId, response };
      }),

    ...createSettingsHandlers(deps),
    ...createDrillHandlers({ ...deps, owners: access }),
    ...createRestoreHandlers({ ...deps, owners: access }),
  };

  /** Throws WRONG_STATE while a restore or drill reads the backup. */
  function refuseInUse({ metadata }: BackupObject): void {
    const reader = deps.readersOf(metadata.id)[0];
    if (reader !== undefined)
      throw new HoldfastError("WRONG_STATE", `The backup cannot be deleted while ${reader} is restored from it.`);
  }

  return serve(BackupService, handlers);
}

function keyMessage(key: BackupKeyObject): BackupKey {
  const { version, createdAt } = currentVersion(key);
  return create(BackupKeySchema, {
    serviceId: key.metadata.id,
    keyVersion: version,
    createdAt: timestampFromMs(createdAt),
    rotatesAt: timestampFromMs(createdAt + keyLifetimeMs),
  });
}

function withSpec(backup: BackupObject, change: Partial<BackupObject["spec"]>, now: number): BackupObject {
  return { ...backup, metadata: nextMetadata(backup.metadata, now), spec: { ...backup.spec, ...change } };
}
