import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "@holdfast/common/clock.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import {
  type LogArchive,
  LogArchiveSchema,
  type RestoreSource,
  RestoreSourceSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ServiceBackups } from "../service/service-backups.ts";
import { readsLog, type ServiceOrigin, unfinishedOrigin } from "../service/service-origin.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import {
  archiveKind,
  type ArchiveObject,
  type LogArchiving,
  type LogKey,
  newArchive,
  undeletePeriodMs,
} from "./archive/archive.ts";
import { isOfOlderVersion } from "./archive/archive-source.ts";
import { chainOf } from "./backup-chain.ts";
import { type BackupIndex, type BackupObject, hasEnded, isVisible } from "./backup.ts";
import { type BackupKeyObject, dataKeyMessage, sourceBackup } from "./backup-key.ts";
import { currentRange } from "./log/log-archive.ts";
import { logTo, restorableOf } from "./restore/restorable.ts";

export interface ServiceBackupsDeps {
  readonly archives: Pick<Collection<ArchiveObject>, "get">;
  /** The archive, with the log position that the primary last reported. */
  readonly liveArchive: (serviceId: string) => ArchiveObject | undefined;
  readonly backupKeys: Pick<Collection<BackupKeyObject>, "get">;
  readonly index: BackupIndex;
  /** Delay after which the log of an idle service is stored, in milliseconds. */
  readonly idleLogDelayMs: number;
  /** Time for which a deletion waits for a failing final backup, in milliseconds. */
  readonly finalBackupTimeoutMs: number;
  readonly sealer: Sealer;
  readonly clock: Clock;
}

/** The facts of a service's backups that its reconciler needs, and the source of its restore with the keys. */
export function createServiceBackups(deps: ServiceBackupsDeps): ServiceBackups & {
  restoreSource(origin: ServiceOrigin): RestoreSource;
  /** Newest time that can be restored, in milliseconds since 1970; undefined if there is none. */
  newestRestorePointOf(service: ManagedServiceObject): number | undefined;
} {
  const { archives, backupKeys, index, sealer, clock } = deps;

  function keyOf(serviceId: string): BackupKeyObject {
    const key = backupKeys.get(serviceId);
    if (key === undefined) throw new Error(`the backup key of ${serviceId} does not exist`);
    return key.object;
  }
  const logKeyOf = (serviceId: string, { keyId: id, keyVersion, wrappedKey }: LogKey) =>
    dataKeyMessage(keyOf(serviceId), { id, keyVersion, wrappedKey }, sealer);

  function sourceOf(origin: ServiceOrigin): RestoreSource {
    const { restoreId, serviceId, backupId } = origin;
    const backup = index.get(backupId)?.object;
    if (backup === undefined) throw new Error(`the backup ${backupId} of the restore does not exist`);
    const chain = chainOf(backup, (id) => index.get(id)?.object);
    if (chain === undefined) throw new Error(`a base of the backup ${backupId} does not exist`);
    return create(RestoreSourceSchema, {
      restoreId,
      serviceId,
      backup: storedBackup(backup),
      earlier: chain.slice(0, -1).map(storedBackup),
      logs: readsLog(origin) ? logsOf(origin, backup) : [],
      target: { target: targetOf(origin) },
    });
  }

  const storedBackup = (backup: BackupObject) => sourceBackup(backup, keyOf(backup.spec.serviceId), sealer);

  function logsOf({ serviceId, targetTime }: ServiceOrigin, backup: BackupObject) {
    const log = deps.liveArchive(serviceId)?.status.log ?? [];
    // A hole that was found after the restore began would end the log before the target. The machine reports the
    // damage.
    const ignoringHoles = log.map((range) => ({ ...range, holes: [] }));
    const chain = logTo(backup, log, targetTime) ?? logTo(backup, ignoringHoles, targetTime);
    if (chain === undefined) throw new Error(`no log follows the backup ${backup.metadata.id}`);
    return chain.map(({ term, firstSequence, lastSequence, keys }) => ({
      term: BigInt(term),
      firstSequence: BigInt(firstSequence),
      lastSequence: BigInt(lastSequence),
      keys: keys.map((key) => logKeyOf(serviceId, key)),
    }));
  }

  function archiveOf({ metadata, status }: ArchiveObject, log: LogArchiving): LogArchive {
    const { id } = metadata;
    const recorded = status.log.filter(({ archiveId }) => archiveId === log.archiveId).flatMap((range) => range.keys);
    const earlier = new Map([...(log.earlierKeys ?? []), ...recorded].map((key) => [key.keyId, key]));
    earlier.delete(log.keyId);
    return create(LogArchiveSchema, {
      archiveId: log.archiveId,
      key: logKeyOf(id, log),
      idleMs: deps.idleLogDelayMs,
      earlierKeys: [...earlier.values()].map((key) => logKeyOf(id, key)),
    });
  }

  function completedOf(serviceId: string): BackupObject[] {
    const isComplete = (backup: BackupObject) => isVisible(backup) && backup.status.state === "completed";
    return index.of(serviceId).flatMap(({ object }) => (isComplete(object) ? [object] : []));
  }

  function retainsDisks({ metadata, spec, status }: ManagedServiceObject): boolean {
    if (metadata.deletionRequestedAt === undefined || spec.finalBackup === "skipped") return false;
    // A service without an archive was never Running, unless its engine has no backups, and an unfinished restore has
    // no complete data: nothing to retain.
    const hasData = archives.get(metadata.id) !== undefined || (retainsDisk(spec) && status.observedGeneration > 0);
    if (!hasData || unfinishedOrigin(spec) !== undefined) return false;
    return !(spec.finalBackup === "wanted" && finalsOf(metadata.id, index).at(-1)?.status.state === "completed");
  }

  return {
    restoreSource: sourceOf,
    newestRestorePointOf: ({ metadata: { id }, spec }) =>
      restorableOf(spec.databaseType, deps.liveArchive(id), completedOf(id)).span?.to,
    instanceOf(service) {
      const origin = unfinishedOrigin(service.spec);
      const { id } = service.metadata;
      const archive = archives.get(id)?.object;
      return {
        ...(origin && { source: sourceOf(origin) }),
        ...(archive &&
          archive.spec.log !== null &&
          !isOfOlderVersion(archive, service) && { archive: archiveOf(archive, archive.spec.log) }),
      };
    },

    canDeleteMachines({ metadata, spec }) {
      if (spec.finalBackup !== "wanted") return true;
      const final = finalsOf(metadata.id, index).at(-1);
      if (final?.status.state === "completed" || final?.status.error?.code === "not_supported") return true;
      const waitedMs = clock.now() - (metadata.deletionRequestedAt ?? 0);
      return waitedMs > deps.finalBackupTimeoutMs && (final === undefined || hasEnded(final));
    },

    retainsDisks,

    newestRecoveryPoint({ metadata, spec }) {
      const archive = deps.liveArchive(metadata.id);
      const log = archive?.spec.log ?? null;
      if (archive === undefined || log === null) return undefined;
      const { span } = restorableOf(spec.databaseType, archive, completedOf(metadata.id));
      return span?.to ?? Math.max(log.since, currentRange(archive)?.toTime ?? 0);
    },

    recordDeletion(unit, service, users) {
      const { id } = service.metadata;
      const archive = archives.get(id);
      if (archive === undefined && !retainsDisks(service)) return;
      const object = archive?.object ?? newArchive(service, clock.now(), clock.now());
      const newest = completedOf(id).at(-1);
      const retainedNodes = retainsDisks(service) ? service.spec.nodes.map((node) => node.id) : [];
      const hasRemains = newest !== undefined || retainedNodes.length > 0;
      const canBeUndeleted = hasRemains && service.spec.finalBackup !== "skipped";
      const at = clock.now();
      const record = { at, until: at + undeletePeriodMs, service, users, backupId: newest?.metadata.id ?? null };
      const deleted = canBeUndeleted ? { ...record, ...(retainedNodes.length > 0 && { retainedNodes }) } : null;
      const recorded = { ...object, status: { ...object.status, deleted } };
      if (archive === undefined) unit.create(archiveKind, recorded);
      else unit.update(archiveKind, archive, recorded);
    },
  };
}

function targetOf({ targetTime, toLogEnd }: ServiceOrigin): NonNullable<RestoreSource["target"]>["target"] {
  if (toLogEnd === true) return { case: "logEnd", value: true };
  if (targetTime === null) return { case: "backupEnd", value: true };
  return { case: "time", value: timestampFromMs(targetTime) };
}

/** Final backups of the service, oldest first. */
function finalsOf(serviceId: string, index: BackupIndex): BackupObject[] {
  return index.of(serviceId).flatMap(({ object }) => (object.spec.trigger === "final" ? [object] : []));
}

/** True if the engine has no backups, and the disk is retained instead. */
function retainsDisk({ databaseType }: ManagedServiceObject["spec"]): boolean {
  return engineOf(databaseType)?.retainsDisk === true;
}

/** True if the engine of the service has backups. */
export function hasBackups({ spec }: ManagedServiceObject): boolean {
  return engineOf(spec.databaseType)?.backups !== undefined;
}
