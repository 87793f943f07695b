import { servicePrefix } from "@holdfast/common/backup/object-names.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { archiveKind, type ArchiveObject, type UndeleteRecord } from "./archive.ts";
import { backupKeyKind } from "../backup-key.ts";
import { hasEnded } from "../backup.ts";
import { deleteBelow } from "../objects/stored-prefix.ts";
import { type ArchiveWorkDeps, deferredRecheckMs, recheckAfter } from "./archive-deps.ts";
import type { BackupExpiry } from "./backup-expiry.ts";

/** Archives of deleted services. */
export interface RetainedArchives {
  /** Retains the data for an undelete for a week, and manual backups until a user deletes them. */
  reconcileDeleted(archive: Stored<ArchiveObject>, signal: AbortSignal): Promise<ReconcileOutcome>;
}

type RetainedArchivesDeps = Pick<
  ArchiveWorkDeps,
  | "archives"
  | "backups"
  | "backupKeys"
  | "index"
  | "objects"
  | "machines"
  | "organizations"
  | "expiryDeferred"
  | "begin"
  | "clock"
  | "log"
>;

export function createRetainedArchives(
  deps: RetainedArchivesDeps,
  expiry: Pick<BackupExpiry, "deleteAll">,
): RetainedArchives {
  const { archives, backups, backupKeys, index, objects, clock, log } = deps;
  const { deleteAll } = expiry;

  async function reconcileDeleted(archive: Stored<ArchiveObject>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const { id, organizationId } = archive.object.metadata;
    await backups.untilRevision(archive.modRevision, 1_000);
    const remaining = index.of(id).map(({ object }) => object);
    const { deleted } = archive.object.status;
    if (remaining.length === 0 && deleted === null) return deleteArchive(archive, signal);
    if (await isOrphan(organizationId, signal)) {
      if (deleted !== null) return expireUndelete(archive, deleted, signal);
      return deleteAll(archive, remaining.filter(hasEnded), signal);
    }
    const automated = remaining.filter((backup) => backup.spec.backupType === "automated" && hasEnded(backup));
    if (deleted === null) return deleteAll(archive, automated, signal);
    const remainingMs = deleted.until - clock.now();
    if (remainingMs > 0) return recheckAfter([remainingMs]);
    return deps.expiryDeferred() ? again(deferredRecheckMs, "deferred") : expireUndelete(archive, deleted, signal);
  }

  /** Ends the undelete period, and deletes the machines that were retained for an undelete. */
  async function expireUndelete(
    archive: Stored<ArchiveObject>,
    { retainedNodes = [] }: UndeleteRecord,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const now = clock.now();
    const unit = deps.begin();
    const status = { ...archive.object.status, deleted: null };
    unit.update(archiveKind, archive, { ...archive.object, status });
    for (const id of retainedNodes) {
      const machine = deps.machines.get(id) ?? (await deps.machines.getCurrent(id, signal));
      if (machine === undefined || machine.object.metadata.deletionRequestedAt !== undefined) continue;
      const { object } = machine;
      const metadata = { ...object.metadata, deletionRequestedAt: now, updatedAt: now };
      unit.update(machineKind, machine, { ...object, metadata });
    }
    await archives.untilRevision(await unit.commit(signal), 1_000);
    return again(0, "undelete expired");
  }

  async function isOrphan(organizationId: string, signal: AbortSignal): Promise<boolean> {
    if (deps.organizations.get(organizationId) !== undefined) return false;
    return (await deps.organizations.getCurrent(organizationId, signal)) === undefined;
  }

  /** Deletes the archive, and all objects and keys of the service. */
  async function deleteArchive(archive: Stored<ArchiveObject>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const { id } = archive.object.metadata;
    await deleteBelow(objects, servicePrefix(id), signal);
    const key = backupKeys.get(id);
    const unit = deps.begin();
    unit.remove(archiveKind, archive);
    if (key !== undefined) unit.remove(backupKeyKind, key);
    await archives.untilRevision(await unit.commit(signal), 1_000);
    log.info("archive removed", { service: id });
    return settled;
  }

  return { reconcileDeleted };
}
