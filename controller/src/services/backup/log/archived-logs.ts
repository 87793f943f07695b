import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { managedServiceKind, type ManagedServiceObject } from "../../service/managed-service.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { Conflict } from "#kernel/store/unit-of-work.ts";
import { archiveKind, type ArchiveObject, type LogArchiving, type LogRange, settingsOf } from "../archive/archive.ts";
import { isOfOlderVersion } from "../archive/archive-source.ts";
import { backupKeyKind, currentVersion, newBackupKey, newDataKey } from "../backup-key.ts";
import { pastRetention } from "../archive/backup-retention.ts";
import { isVisible } from "../backup.ts";
import {
  awaitsLog,
  currentRange,
  hasGap,
  isWorthRecording,
  rangesSince,
  rangesToDelete,
  reportedRanges,
} from "./log-archive.ts";
import { storeLogKey } from "../objects/stored-key.ts";
import type { ArchiveWorkDeps } from "../archive/archive-deps.ts";
import { gapEvent } from "./reported-damage.ts";
import { isRead } from "../archive/backup-expiry.ts";
import { logObject, logsPrefix } from "@holdfast/common/backup/object-names.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { objectsBelow } from "../objects/stored-prefix.ts";
import { taskTarget } from "../../service/member/member-roles.ts";

/** Archived logs of services: their ranges, start and end. */
export interface ArchivedLogs {
  /**
   * Records the log's ranges, deletes log that nothing needs, and starts a new archive after a gap or a key rotation.
   * Undefined if nothing changed.
   */
  maintain(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome | undefined>;
  /**
   * Starts the log's archive before a base backup, and waits at most 2 minutes until the machine stores the log.
   * Undefined if there is nothing to wait for.
   */
  awaitFollowed(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    trigger: string,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome | undefined>;
}

const removedMessage =
  "Log was removed from the machine before it was stored. A new backup begins now; until it is complete, restore to a time before the gap.";

type ArchivedLogsDeps = Pick<
  ArchiveWorkDeps,
  | "archives"
  | "backupKeys"
  | "index"
  | "services"
  | "objects"
  | "fleet"
  | "readersOf"
  | "expiryDeferred"
  | "sealer"
  | "newId"
  | "begin"
  | "clock"
  | "log"
>;

export function createArchivedLogs(deps: ArchivedLogsDeps): ArchivedLogs {
  const { archives, backupKeys, index, services, objects, clock } = deps;
  const reportOf = (service: ManagedServiceObject) => deps.fleet.observation(taskTarget(service).id)?.instance.archive;
  const rangesOf = (archive: ArchiveObject, service: ManagedServiceObject) =>
    reportedRanges(archive, service, (machineId) => deps.fleet.observation(machineId)?.instance.archive);

  async function maintainLog(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome | undefined> {
    const { object } = archive;
    const { log: current } = object.spec;
    if (current === null) return undefined;
    const { id, deletionRequestedAt } = service.metadata;
    const report = reportOf(service);
    const recorded = rangesOf(object, service);
    // The machine will be deleted, so its last report is recorded without waiting for the interval.
    if (deletionRequestedAt !== undefined)
      return recorded === object.status.log ? undefined : recordRanges(archive, recorded, signal);
    if (isOfOlderVersion(object, service))
      return recorded === object.status.log ? undefined : recordRanges(archive, recorded, signal);
    const key = backupKeys.get(id)?.object;
    if (hasGap(current, report)) return startArchiving(archive, { ...newArchiving(id), event: "gap" }, signal);
    if (key !== undefined && currentVersion(key).version !== current.keyVersion)
      return startArchiving(archive, { ...newArchiving(id), ...continuedArchive(current, recorded) }, signal);
    // New ranges are recorded before old log is deleted, because a deletion may be deferred or fail.
    // The end of a replaced primary's log is recorded immediately: the next term's range may begin before it.
    const isReplaced = service.status.term > (currentRange(object)?.term ?? service.status.term);
    if (isWorthRecording(object.status.log, recorded) || (isReplaced && recorded !== object.status.log))
      return recordRanges(archive, recorded, signal);
    const retained = rangesSince(recorded, current, oldestBase(object));
    if (retained === recorded || deps.expiryDeferred()) return undefined;
    await deleteLog(objects, id, recorded, retained, signal);
    return recordRanges(archive, retained, signal);
  }

  async function recordRanges(
    archive: Stored<ArchiveObject>,
    ranges: readonly LogRange[],
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { object } = archive;
    const unit = deps.begin();
    unit.update(archiveKind, archive, { ...object, status: { ...object.status, log: ranges } });
    await archives.untilRevision(await unit.commit(signal), 1_000);
    return again(0, "log recorded");
  }

  async function awaitFollowedLog(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    trigger: string,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome | undefined> {
    const { log: current } = archive.object.spec;
    if (trigger === "final" || engineOf(service.spec.databaseType)?.backups?.restorePoints !== "any_second")
      return undefined;
    const { id, organizationId } = service.metadata;
    if (backupKeys.get(id) === undefined) {
      const unit = deps.begin();
      unit.create(backupKeyKind, newBackupKey(id, organizationId, deps.sealer, clock.now()));
      await backupKeys.untilRevision(await unit.commit(signal), 1_000);
      return again(0, "key created");
    }
    if (current === null) return startArchiving(archive, newArchiving(id), signal);
    const awaits = awaitsLog(archive.object, reportOf(service), clock.now());
    return awaits ? again(1_000, "the log is not stored yet") : undefined;
  }

  /** Fields that do not change when only the key of an archive is rotated. */
  function continuedArchive(log: LogArchiving, recorded: readonly LogRange[]): Partial<LogArchiving> {
    const { archiveId, since, earlierKeys = [], keyId, keyVersion, wrappedKey } = log;
    const isRecorded = recorded.some((range) => range.archiveId === archiveId);
    const earlier = isRecorded ? {} : { earlierKeys: [...earlierKeys, { keyId, keyVersion, wrappedKey }] };
    return { archiveId, since, ...earlier };
  }

  function newArchiving(serviceId: string): LogArchiving {
    const key = backupKeys.get(serviceId)?.object;
    if (key === undefined) throw new Conflict();
    const [archiveId, keyId] = [deps.newId(), deps.newId()];
    return { archiveId, keyId, ...newDataKey(key, keyId, deps.sealer), since: clock.now() };
  }

  /** The next instance spec contains the new archive; the engine does not restart. */
  async function startArchiving(
    archive: Stored<ArchiveObject>,
    { event, ...log }: LogArchiving & { event?: "gap" },
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { object } = archive;
    const { id, organizationId } = object.metadata;
    const service = services.get(id);
    if (service === undefined) return settled;
    const key = backupKeys.get(id)?.object;
    if (key === undefined) throw new Conflict();
    // The key is stored before a machine gets it, so that each object that the machine stores can be decrypted.
    await storeLogKey(objects, log, key);
    const unit = deps.begin();
    // Log that is stored so far belongs to the old archive and key.
    const status = { ...object.status, log: rangesOf(object, service.object) };
    unit.update(archiveKind, archive, { ...object, spec: { ...object.spec, log }, status });
    const { spec } = service.object;
    unit.update(managedServiceKind, service, {
      ...service.object,
      spec: { ...spec, instanceGeneration: spec.instanceGeneration + 1 },
    });
    if (event === "gap")
      unit.event(
        gapEvent({
          serviceId: id,
          organizationId,
          since: currentRange({ ...object, status })?.toTime ?? clock.now(),
          message: removedMessage,
        }),
      );
    await archives.untilRevision(await unit.commit(signal), 1_000);
    deps.log.info("log archive started", { service: id, archive: log.archiveId, key: log.keyVersion });
    return again(1_000, "log archive started");
  }

  /** Start of the oldest base backup whose log is needed, in milliseconds since 1970; undefined if there is none. */
  function oldestBase(archive: ArchiveObject): number | undefined {
    const { id } = archive.metadata;
    const backups = index.of(id).map((each) => each.object);
    // A backup that is retained only for its increments does not need log.
    const past = new Set(pastRetention(archive, backups, settingsOf(id, archive), clock.now()));
    const oldest = backups.find(
      (backup) =>
        isVisible(backup) && backup.status.state === "completed" && (!past.has(backup) || isRead(backup, deps)),
    );
    return oldest?.status.startedAt ?? undefined;
  }

  return { maintain: maintainLog, awaitFollowed: awaitFollowedLog };
}

/**
 * Deletes log objects that belong to no retained range, and all objects before the retained ones: a replaced primary
 * may have stored more than was recorded. A call can be interrupted and repeated.
 */
export async function deleteLog(
  objects: Pick<ObjectStore, "list" | "delete">,
  service: string,
  before: readonly LogRange[],
  after: readonly LogRange[],
  signal: AbortSignal,
): Promise<void> {
  for (const { range, end } of rangesToDelete(before, after))
    for (let sequence = range.firstSequence; sequence < end; sequence += 1) {
      signal.throwIfAborted();
      await objects.delete(logObject({ service, term: range.term }, sequence));
    }
  if (rangesToDelete(before, after).length === 0) return;
  // Names of log objects sort by term and sequence number.
  const [first] = after.map(({ term, firstSequence }) => logObject({ service, term }, firstSequence)).toSorted();
  if (first === undefined) return;
  for await (const { key } of objectsBelow(objects, logsPrefix(service), { signal })) {
    if (key >= first) return;
    await objects.delete(key);
  }
}
