import assert from "node:assert";
import type { OperationObject } from "#operation/operation.ts";
import { type ArchiveObject, undeletePeriodMs } from "#services/backup/archive/archive.ts";
import type { BackupObject } from "#services/backup/backup.ts";
import { serviceIn } from "#services/backup/restore/restore-point.ts";
import { recreated } from "#services/backup/restore/undelete.ts";
import type { ServiceDescriptor } from "#services/backup/objects/service-descriptor.ts";
import type { DatabaseUserObject } from "#services/contents/user/database-user.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import type { NewestBase } from "./newest-base.ts";
import type { StoredLog } from "./stored-log.ts";

/** The objects from which controllers create a recovered service again. */
export interface RecoveredService {
  /** Undefined if the service was deleted. */
  readonly service: ManagedServiceObject | undefined;
  readonly operation: OperationObject | undefined;
  readonly users: readonly DatabaseUserObject[];
  readonly archive: ArchiveObject;
  readonly backups: readonly BackupObject[];
}

export interface RecoveredServiceArgs {
  readonly descriptor: ServiceDescriptor;
  /** Id of the service's organization in this installation. */
  readonly organizationId: string;
  readonly log: StoredLog;
  /** Undefined is permitted only if the service was deleted. */
  readonly base: NewestBase | undefined;
  readonly clock: { now(): number };
  readonly newId: () => string;
}

/** Distance to the stored term, so that the new term exceeds all terms that machines of the old installation have. */
const termStep = 1_000;

/**
 * The objects of one service. A new archive starts, and a backup is due immediately. A service whose deletion was in
 * progress is recorded as deleted now, and can be undeleted for the usual time.
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
  assert(base !== undefined, "a service without a backup that can be opened is not recovered");
  if (service.metadata.deletionRequestedAt !== undefined) {
    const backupId = base.backup.metadata.id;
    return {
      ...nothing,
      archive: archiveWith({ deleted: { at: now, until: now + undeletePeriodMs, backupId, service, users } }),
    };
  }
  const term = Math.max(service.status.term, log.term) + termStep;
  const ofBase = serviceIn(base.backup.spec.version, service);
  const raised = { ...ofBase, status: { ...service.status, term } };
  const from = { kind: "recover", backupId: base.backup.metadata.id, targetTime: null } as const;
  const origin = base.hasLog ? { ...from, toLogEnd: true } : from;
  const { service: created, operation } = recreated(raised, origin, { now, nodeId: newId(), operationId: newId() });
  // This installation chooses image and kernel.
  const { guestKernel: _, ...spec } = created.spec;
  const recovered = { ...created, spec: { ...spec, image: "" } };
  return { service: recovered, operation, users, backups, archive: archiveWith({}) };
}
