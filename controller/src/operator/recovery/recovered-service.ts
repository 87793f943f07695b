import assert from "node:assert";
import type { OperationObject } from "#operation/operation.ts";
import { type ArchiveObject, undeleteForMs } from "#services/backup/archive.ts";
import type { BackupObject } from "#services/backup/backup.ts";
import { serviceIn } from "#services/backup/backup-version.ts";
import { recreated } from "#services/backup/undelete.ts";
import type { ServiceDescriptor } from "#services/backup/service-descriptor.ts";
import type { DatabaseUserObject } from "#services/contents/user/database-user.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { NewestBase } from "./newest-base.ts";
import type { StoredLog } from "./stored-log.ts";

/** The objects from which a controller creates the service. */
export interface RecoveredService {
  /** Undefined for a service that was deleted. */
  readonly service: ManagedServiceObject | undefined;
  readonly operation: OperationObject | undefined;
  readonly users: readonly DatabaseUserObject[];
  readonly archive: ArchiveObject;
  readonly backups: readonly BackupObject[];
}

export interface RecoveredServiceArgs {
  readonly descriptor: ServiceDescriptor;
  /** The organization that it belongs to now. */
  readonly organizationId: string;
  readonly log: StoredLog;
  /** Undefined only for a service that was deleted. */
  readonly base: NewestBase | undefined;
  readonly clock: { now(): number };
  readonly newId: () => string;
}

/** Raises the term above any that the old installation may still use. */
const termStep = 1_000;

/**
 * The objects of one service. Its archive starts again, and a backup is due at once. A service whose deletion was
 * in progress is recorded as deleted now, and can be undeleted for the usual time.
 */
export function recoveredService(args: RecoveredServiceArgs): RecoveredService {
  const { descriptor, organizationId, log, base, clock, newId } = args;
  const now = clock.now();
  const at = <R extends { readonly metadata: { readonly organizationId: string } }>(object: R): R => ({
    ...object,
    metadata: { ...object.metadata, organizationId },
  });
  const { service: former, archive } = descriptor;
  const users = descriptor.users.map(at);
  const backups = descriptor.backups.map((backup) => at({ ...backup, spec: { ...backup.spec, verification: null } }));
  const { deleted } = archive.status;
  const status = { ...archive.status, log: log.ranges, lastAutomatedAt: null, firstDueAt: now };
  const archiveWith = (change: Partial<ArchiveObject["status"]>): ArchiveObject =>
    at({ ...archive, spec: { ...archive.spec, log: null }, status: { ...status, ...change } });
  const nothing = { service: undefined, operation: undefined, users: [], backups };
  if (former === null)
    return { ...nothing, archive: archiveWith({ deleted: deleted && { ...deleted, service: at(deleted.service) } }) };
  const service = at(former);
  assert(base !== undefined, "a service without a backup that opens is not recovered");
  if (service.metadata.deletionRequestedAt !== undefined) {
    const backupId = base.backup.metadata.id;
    return {
      ...nothing,
      archive: archiveWith({ deleted: { at: now, until: now + undeleteForMs, backupId, service, users } }),
    };
  }
  const term = Math.max(service.status.term, log.term) + termStep;
  const ofBase = serviceIn(base.backup.spec.version, service);
  const raised = { ...ofBase, status: { ...service.status, term } };
  const from = { kind: "recover", backupId: base.backup.metadata.id, targetTime: null } as const;
  const origin = base.hasLog ? { ...from, toLogEnd: true } : from;
  const { service: back, operation } = recreated(raised, origin, { now, nodeId: newId(), operationId: newId() });
  // Images and kernels are chosen by this installation.
  const { guestKernel: _, ...spec } = back.spec;
  return { service: { ...back, spec: { ...spec, image: "" } }, operation, users, backups, archive: archiveWith({}) };
}
