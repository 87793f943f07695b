import { type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import { archiveKind, type ArchiveObject, settingsOf } from "./archive.ts";
import { backupKeyKind, currentVersion, keyLifetimeMs, rotated, withoutUnused } from "../backup-key.ts";
import { expired, expiresAtOf } from "./backup-retention.ts";
import { backupKind, type BackupObject, isVisible } from "../backup.ts";
import { type ArchiveWorkDeps, deferredRecheckMs } from "./archive-deps.ts";

/** Deletion of expired backups, and rotation of keys. */
export interface BackupExpiry {
  /** Deletes expired backups; returns the milliseconds until the next one expires, null if none will. */
  expire(archive: Stored<ArchiveObject>, signal: AbortSignal): Promise<number | null>;
  /** Requests the deletion of these backups, except those being read. The backup reconciler deletes their objects. */
  deleteAll(
    archive: Stored<ArchiveObject>,
    expiredBackups: readonly BackupObject[],
    signal: AbortSignal,
  ): Promise<ReconcileOutcome>;
  /** Rotates the key of a service if it is due; returns the milliseconds until it is, null without a key. */
  rotateKey(id: string, signal: AbortSignal): Promise<number | null>;
}

/** True if a service or drill is being restored from the backup. */
export function isRead({ metadata }: BackupObject, { readersOf }: Pick<ArchiveWorkDeps, "readersOf">): boolean {
  return readersOf(metadata.id).length > 0;
}

type ExpiryDeps = Pick<
  ArchiveWorkDeps,
  | "archives"
  | "backups"
  | "backupKeys"
  | "index"
  | "readersOf"
  | "expiryDeferred"
  | "sealer"
  | "begin"
  | "clock"
  | "log"
>;

export function createBackupExpiry(deps: ExpiryDeps): BackupExpiry {
  const { archives, backups, backupKeys, index, clock, log } = deps;
  const all = (id: string) => index.of(id).map(({ object }) => object);

  async function expire(archive: Stored<ArchiveObject>, signal: AbortSignal): Promise<number | null> {
    const { id } = archive.object.metadata;
    const settings = settingsOf(id, archive.object);
    const now = clock.now();
    const expiredBackups = expired(archive.object, all(id), settings, now).filter((each) => !isRead(each, deps));
    if (expiredBackups.length > 0 && deps.expiryDeferred()) return deferredRecheckMs;
    await deleteAll(archive, expiredBackups, signal);
    const times = all(id).flatMap((backup) => expiresAtOf(backup, settings) ?? []);
    const future = times.filter((at) => at > now);
    return future.length === 0 ? null : Math.min(...future) - now;
  }

  async function deleteAll(
    { object: archive, modRevision }: Stored<ArchiveObject>,
    expiredBackups: readonly BackupObject[],
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const now = clock.now();
    // Increments are deleted before the backups that they depend on.
    for (const { metadata } of expiredBackups
      .toReversed()
      .filter((backup) => isVisible(backup) && !isRead(backup, deps))) {
      const stored = backups.get(metadata.id);
      if (stored === undefined) continue;
      const { object } = stored;
      const unit = deps.begin();
      unit.onlyWhile({ key: keyOf(archiveKind, archive.metadata.id), modRevision });
      unit.update(backupKind, stored, { ...object, metadata: { ...object.metadata, deletionRequestedAt: now } });
      await unit.commit(signal);
      log.info("backup expired", { service: object.spec.serviceId, backup: metadata.id });
    }
    return settled;
  }

  async function rotateKey(id: string, signal: AbortSignal): Promise<number | null> {
    const key = backupKeys.get(id);
    if (key === undefined) return null;
    const now = clock.now();
    const remainingMs = currentVersion(key.object).createdAt + keyLifetimeMs - now;
    if (remainingMs <= 0 && deps.expiryDeferred()) return deferredRecheckMs;
    const needed = new Set(all(id).map(({ spec }) => spec.keyVersion));
    const { log: current } = archives.get(id)?.object.spec ?? { log: null };
    if (current !== null)
      for (const { keyVersion } of [current, ...(current.earlierKeys ?? [])]) needed.add(keyVersion);
    for (const { keys } of archives.get(id)?.object.status.log ?? [])
      for (const { keyVersion } of keys) needed.add(keyVersion);
    const after = withoutUnused(remainingMs <= 0 ? rotated(key.object, deps.sealer, now) : key.object, needed);
    if (after === key.object) return remainingMs;
    const unit = deps.begin();
    unit.update(backupKeyKind, key, after);
    await backupKeys.untilRevision(await unit.commit(signal), 1_000);
    log.info("backup key changed", { service: id, version: currentVersion(after).version });
    return keyLifetimeMs;
  }

  return { expire, deleteAll, rotateKey };
}
