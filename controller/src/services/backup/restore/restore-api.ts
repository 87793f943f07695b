import type { Call, Handlers } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { BackupService } from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import type { ManagedService } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { type DatabaseUserObject, newUser, serviceOfUser } from "../../contents/user/database-user.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { NewServiceContext } from "../../service/new-service.ts";
import { operationMembers } from "../../service/operation-members.ts";
import type { ServiceConsumers } from "../../service/service-consumers.ts";
import { warned } from "#operation/operation.ts";
import type { ServiceCreation } from "../../service/service-creation.ts";
import type { ServiceOrigin } from "../../service/service-origin.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { machineKind, type MachineObject } from "#fleet/machine/machine.ts";
import {
  archiveKind,
  type ArchiveObject,
  type ArchiveStatus,
  type BackupSource,
  type UndeleteRecord,
  sourceOf,
} from "../archive/archive.ts";
import type { BackupAccess, BackupOwner } from "../backup-access.ts";
import { chainOf } from "../backup-chain.ts";
import { type BackupIndex, backupKind, type BackupObject, isVisible } from "../backup.ts";
import { requireCompleted } from "../backup-requests.ts";
import { attachedUsers } from "./attached-users.ts";
import { newNameOf, type RestoreChoice, restoredService } from "./restore-request.ts";
import { choosePoint, serviceIn, sourceIn } from "./restore-point.ts";
import { undeleted, undeletedOnDisk } from "./undelete.ts";
import { engineProfileOf } from "../../engine/engine-profiles.ts";

export interface RestoreApiDeps {
  readonly creation: ServiceCreation;
  readonly index: BackupIndex;
  readonly archives: Collection<ArchiveObject>;
  /** The archive, with the log position that the primary last reported. */
  readonly liveArchive: (serviceId: string) => ArchiveObject | undefined;
  readonly users: Pick<Collection<DatabaseUserObject>, "by">;
  /** Ids of the services and drills that a restore from this backup is in progress for. */
  readonly readersOf: (backupId: string) => readonly string[];
  readonly machines: Pick<Collection<MachineObject>, "get">;
  readonly consumers: readonly ServiceConsumers[];
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
}

type RestoreHandlers = Pick<
  Handlers<typeof BackupService>,
  "restoreToPoint" | "restoreBackup" | "forkManagedService" | "undeleteManagedService"
>;

type CopyRequest = Omit<RestoreChoice, "name"> & Parameters<typeof newNameOf>[0];

/** The RPCs that create services from backups. The source is only read. */
export function createRestoreHandlers(deps: RestoreApiDeps & { readonly owners: BackupAccess }): RestoreHandlers {
  const { owners, creation, index, archives, sealer } = deps;

  async function copy(
    call: Call,
    action: string,
    { name, targetServiceName, ...settings }: CopyRequest,
    choose: () => { owner: BackupOwner; origin: ChosenOrigin; point?: number },
  ): Promise<ManagedService> {
    const named = newNameOf({ name, targetServiceName });
    const choice = { ...settings, name: named.name };
    const { message } = await creation.create(call, action, (context, unit) => {
      const { owner, origin: chosen, point } = choose();
      const { spec, status } = pinBackup(unit, chosen.backupId);
      const origin = { ...chosen, ...(status.restoresTo !== null && { restoresTo: status.restoresTo }) };
      const copied = restoredService(
        sourceIn(spec.version, requireSource(owner)),
        choice,
        origin,
        context,
        named.nameField,
      );
      const operation = warned(copied.operation, earlierWarnings(origin, spec.databaseType, point));
      return { service: copied.service, operation, users: usersFor(copied.service, origin.serviceId, context) };
    });
    return message;
  }

  /** Makes the transaction fail if the backup, or one that it depends on, is deleted before the commit. */
  function pinBackup(unit: Changes, backupId: string): BackupObject {
    const get = (id: string) => index.get(id)?.object;
    const backup = get(backupId);
    const chain = backup && chainOf(backup, get);
    if (backup === undefined || chain === undefined)
      throw new HoldfastError("BACKUP_NOT_FOUND", "The backup was deleted.");
    for (const { metadata } of chain)
      unit.onlyWhile({ key: keyOf(backupKind, metadata.id), modRevision: index.get(metadata.id)?.modRevision ?? 0n });
    return backup;
  }

  /** The users of the copy, with new passwords: the source's passwords do not work there. */
  function usersFor(
    service: ManagedServiceObject,
    sourceId: string,
    { now }: Pick<NewServiceContext, "now">,
  ): DatabaseUserObject[] {
    const { id: serviceId, organizationId } = service.metadata;
    const engine = service.spec.databaseType;
    const of = { serviceId, organizationId, engine, sealer, now };
    const others = engineProfileOf(engine).copiesCreateUsers === true ? managedUsers(sourceId) : [];
    return [{ username: defaultUser, role: "admin" as const }, ...others].map(
      ({ username, role }) => newUser({ ...of, username, role }).user,
    );
  }

  /** Users other than the default one. A copy gets all of them if the engine's backups do not contain its users. */
  function managedUsers(serviceId: string): Pick<DatabaseUserObject["spec"], "username" | "role">[] {
    const users = deps.users.by(serviceOfUser, serviceId).map(({ object }) => object.spec);
    return users.filter(({ username, attachment }) => username !== defaultUser && attachment === undefined);
  }

  return {
    restoreBackup: ({ serviceId, backupId, ...request }, call) =>
      copy(call, "backup.restore", request, () => {
        const owner = owners.backup(serviceId, backupId, call);
        requireCompleted(owner.backup.object);
        return { owner, origin: { kind: "restore", serviceId, backupId, targetTime: null } };
      }),

    restoreToPoint: ({ serviceId, restorePoint, ...request }, call) =>
      copy(call, "backup.restore", request, () => {
        const owner = owners.owner(serviceId, call);
        const point = restorePoint === undefined ? 0 : timestampMs(restorePoint);
        const { databaseType } = requireSource(owner);
        const backups = visibleBackups(serviceId);
        const { backupId, targetTime } = choosePoint(point, databaseType, deps.liveArchive(serviceId), backups);
        return { owner, origin: { kind: "restore", serviceId, backupId, targetTime }, point };
      }),

    forkManagedService: ({ serviceId, backupId, ...request }, call) =>
      copy(call, "managed-service.fork", request, () => {
        const owner = owners.owner(serviceId, call);
        const service = requireRunning(owner);
        if (engineOf(service.spec.databaseType)?.backups?.fork !== true)
          throw new HoldfastError(
            "NOT_SUPPORTED",
            `${service.spec.databaseType} cannot be forked: restore a backup into a new service.`,
          );
        const backup =
          backupId === undefined ? newestOf(serviceId) : owners.backup(serviceId, backupId, call).backup.object;
        requireCompleted(backup);
        return { owner, origin: { kind: "fork", serviceId, backupId: backup.metadata.id, targetTime: null } };
      }),

    undeleteManagedService: async ({ serviceId, name }, call) => {
      const { message } = await creation.create(call, "managed-service.undelete", async (context, unit) => {
        const archive = requireDeleted(owners.owner(serviceId, call));
        const { deleted: record } = archive.object.status;
        if (record === null || record.until <= context.now) throw notRestorable();
        const deleted = { ...record, users: await attachedUsers(unit, record, archive.modRevision, deps.consumers) };
        const machines = retainedMachines(deleted, deps.machines);
        if (machines !== undefined) {
          for (const { object, modRevision } of machines)
            unit.onlyWhile({ key: keyOf(machineKind, object.metadata.id), modRevision });
          // The data are the same, so the archive's log continues.
          const { status } = archive.object;
          unit.update(archiveKind, archive, { ...archive.object, status: withBaseDue(status, context.now) });
          return undeletedOnDisk(
            deleted,
            name,
            machines.map(({ object }) => object),
            context,
          );
        }
        if (deleted.backupId === null) throw notRestorable();
        const { version } = pinBackup(unit, deleted.backupId).spec;
        // A new archive starts, because the restored data may not continue the log of the old one.
        const spec = { ...archive.object.spec, log: null };
        const status = withBaseDue(archive.object.status, context.now);
        unit.update(archiveKind, archive, { ...archive.object, spec, status });
        return undeleted({ ...deleted, service: serviceIn(version, deleted.service) }, name, context);
      });
      return message;
    },
  };

  function newestOf(serviceId: string): BackupObject {
    const newest = visibleBackups(serviceId).findLast(({ status }) => status.state === "completed");
    if (newest === undefined) throw new HoldfastError("WRONG_STATE", "The service has no completed backup yet.");
    return newest;
  }

  function visibleBackups(serviceId: string): BackupObject[] {
    return index.of(serviceId).flatMap(({ object }) => (isVisible(object) ? [object] : []));
  }

  function requireDeleted({ service, id }: BackupOwner): Stored<ArchiveObject> {
    const archive = archives.get(id);
    if (service === undefined && archive !== undefined) return archive;
    throw new HoldfastError("WRONG_STATE", "The service is not deleted.");
  }
}

type ChosenOrigin = Omit<ServiceOrigin, "restoreId" | "finishedAt">;

/** Warns if an engine without a log is restored to a backup that is older than the requested time. */
function earlierWarnings({ restoresTo, targetTime }: ChosenOrigin, databaseType: string, point?: number): string[] {
  if (point === undefined || targetTime !== null || restoresTo === undefined || restoresTo === point) return [];
  const [requested, reached] = [point, restoresTo].map((ms) => new Date(ms).toISOString());
  return [
    `The data are those of ${reached}, not of ${requested}: services of ${databaseType} are restored to their backups, and this is the newest one at or before that time.`,
  ];
}

/** The archive's status after an undelete: a base backup is due as soon as the service is Running. */
function withBaseDue(status: ArchiveStatus, now: number): ArchiveStatus {
  return { ...status, deleted: null, lastAutomatedAt: null, firstDueAt: now };
}

function notRestorable(): HoldfastError {
  return new HoldfastError("WRONG_STATE", "No backup and no disk of the service remains to restore it from.");
}

/** All machines that were retained of a deleted service; undefined if one is deleted or being deleted. */
function retainedMachines(
  { retainedNodes = [] }: UndeleteRecord,
  machines: Pick<Collection<MachineObject>, "get">,
): Stored<MachineObject>[] | undefined {
  const found = retainedNodes.flatMap((id) => machines.get(id) ?? []);
  const isComplete = found.every(({ object }) => object.metadata.deletionRequestedAt === undefined);
  return found.length > 0 && found.length === retainedNodes.length && isComplete ? found : undefined;
}

function requireSource({ service, archive }: BackupOwner): BackupSource {
  if (service !== undefined) return sourceOf(service.object);
  if (archive !== undefined) return archive.object.spec.source;
  throw new HoldfastError("SERVICE_NOT_FOUND", "There is no such service in the organization.");
}

/** Throws SERVICE_NOT_FOUND if the service is deleted, and WRONG_STATE unless it is Running. */
function requireRunning({ service }: BackupOwner): ManagedServiceObject {
  if (service === undefined)
    throw new HoldfastError("SERVICE_NOT_FOUND", "The service was deleted; restore its backup.");
  const { object } = service;
  if (object.status.state === "Running" && object.metadata.deletionRequestedAt === undefined) return object;
  throw new HoldfastError("WRONG_STATE", `The source must be Running; it is ${object.status.state}.`, {
    members: operationMembers(object, undefined),
  });
}
