import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { managedServiceKind, type ManagedServiceObject } from "../service/managed-service.ts";
import { again, type Outcome, settled } from "#kernel/runtime/reconciler.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { Conflict } from "#kernel/store/unit-of-work.ts";
import { archiveKind, type ArchiveObject, type LogArchiving, type LogRange, settingsOf } from "./archive.ts";
import { isOutgrown } from "./archive-source.ts";
import { backupKeyKind, currentVersion, newBackupKey, newDataKey } from "./backup-key.ts";
import { pastRetention } from "./backup-retention.ts";
import { isShown } from "./backup.ts";
import { deleteLog } from "./log-objects.ts";
import { currentRange, hasGap, isDue, isLogAwaited, rangesSince, rangesWith } from "./log-archive.ts";
import { storeLogKey } from "./stored-key.ts";
import type { ArchiveWorkDeps } from "./archive-deps.ts";
import { isRead } from "./expiry.ts";

/** The log of services in their archives: how far it is, and from when on it is needed. */
export interface LogKeeping {
  /** Writes down how far the log is, ends what nothing needs, and begins anew where it has a gap or another key; undefined for nothing. */
  keep(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    signal: AbortSignal,
  ): Promise<Outcome | undefined>;
  /** A base counts from when the log is followed; a machine that cannot follow it keeps no base waiting for long. */
  awaited(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    trigger: string,
    signal: AbortSignal,
  ): Promise<Outcome | undefined>;
}

export function createLogKeeping(deps: ArchiveWorkDeps): LogKeeping {
  const { archives, backupKeys, index, services, objects, clock } = deps;
  const toldOf = ({ status }: ManagedServiceObject) => deps.fleet.observation(status.primaryNodeId)?.instance.archive;

  async function keepLog(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    signal: AbortSignal,
  ): Promise<Outcome | undefined> {
    const { object } = archive;
    const { log: current } = object.spec;
    if (current === null) return undefined;
    const { id, deletionRequestedAt } = service.metadata;
    const told = toldOf(service);
    const noted = rangesWith(object, told);
    // Its machine goes soon, and what that knows goes with it.
    if (deletionRequestedAt !== undefined)
      return noted === object.status.log ? undefined : noteLog(archive, noted, signal);
    if (isOutgrown(object, service)) return noted === object.status.log ? undefined : noteLog(archive, noted, signal);
    const key = backupKeys.get(id)?.object;
    if (hasGap(current, told)) return beginLog(archive, { ...newLog(id), event: "gap" }, signal);
    if (key !== undefined && currentVersion(key).version !== current.keyVersion)
      return beginLog(archive, { ...newLog(id), ...continued(current, noted) }, signal);
    const kept = rangesSince(noted, current, oldestBase(object));
    if (kept === noted && !isDue(object.status.log, noted)) return undefined;
    if (kept !== noted && deps.held()) return undefined;
    await deleteLog(objects, id, noted, kept, signal);
    return noteLog(archive, kept, signal);
  }

  async function noteLog(
    archive: Stored<ArchiveObject>,
    ranges: readonly LogRange[],
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { object } = archive;
    const unit = deps.begin();
    unit.update(archiveKind, archive, { ...object, status: { ...object.status, log: ranges } });
    await archives.reached(await unit.commit(signal), 1_000);
    return again(0, "log noted");
  }

  async function awaitLog(
    service: ManagedServiceObject,
    archive: Stored<ArchiveObject>,
    trigger: string,
    signal: AbortSignal,
  ): Promise<Outcome | undefined> {
    const { log: current } = archive.object.spec;
    if (trigger === "final" || engineOf(service.spec.databaseType)?.backups?.restorePoints !== "any_second")
      return undefined;
    const { id, organizationId } = service.metadata;
    if (backupKeys.get(id) === undefined) {
      const unit = deps.begin();
      unit.create(backupKeyKind, newBackupKey(id, organizationId, deps.sealer, clock.now()));
      await backupKeys.reached(await unit.commit(signal), 1_000);
      return again(0, "key made");
    }
    if (current === null) return beginLog(archive, newLog(id), signal);
    const isAwaited = isLogAwaited(archive.object, toldOf(service), clock.now());
    return isAwaited ? again(1_000, "the log is not followed yet") : undefined;
  }

  /** What stays of an archive whose key is renewed. */
  function continued(log: LogArchiving, noted: readonly LogRange[]): Partial<LogArchiving> {
    const { archiveId, since, earlierKeys = [], keyId, keyVersion, wrappedKey } = log;
    const isNoted = noted.some((range) => range.archiveId === archiveId);
    const earlier = isNoted ? {} : { earlierKeys: [...earlierKeys, { keyId, keyVersion, wrappedKey }] };
    return { archiveId, since, ...earlier };
  }

  function newLog(serviceId: string): LogArchiving {
    const key = backupKeys.get(serviceId)?.object;
    if (key === undefined) throw new Conflict();
    const [archiveId, keyId] = [deps.newId(), deps.newId()];
    return { archiveId, keyId, ...newDataKey(key, keyId, deps.sealer), since: clock.now() };
  }

  /** The machine hears of it with the next settings of its engine, which does not restart for it. */
  async function beginLog(
    archive: Stored<ArchiveObject>,
    { event, ...log }: LogArchiving & { event?: "gap" },
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { object } = archive;
    const { id, organizationId } = object.metadata;
    const service = services.get(id);
    if (service === undefined) return settled;
    const key = backupKeys.get(id)?.object;
    if (key === undefined) throw new Conflict();
    // In the store before a machine has it: whatever that stores can be opened.
    await storeLogKey(objects, log, key);
    const unit = deps.begin();
    // What is stored until now is of the archive, and under the key, of before.
    const status = { ...object.status, log: rangesWith(object, toldOf(service.object)) };
    unit.update(archiveKind, archive, { ...object, spec: { ...object.spec, log }, status });
    const { spec } = service.object;
    unit.update(managedServiceKind, service, {
      ...service.object,
      spec: { ...spec, instanceGeneration: spec.instanceGeneration + 1 },
    });
    if (event === "gap")
      unit.event({
        type: "backup.gap",
        organizationId,
        objectKind: "managed-service",
        objectId: id,
        data: { service_id: id, since: new Date(currentRange(object)?.toTime ?? clock.now()).toISOString() },
      });
    await archives.reached(await unit.commit(signal), 1_000);
    deps.log.info("log archive begun", { service: id, archive: log.archiveId, key: log.keyVersion });
    return again(1_000, "log archive begun");
  }

  /** From when on log is needed. */
  function oldestBase(archive: ArchiveObject): number | undefined {
    const { id } = archive.metadata;
    const backups = index.of(id).map((each) => each.object);
    // What stays only since an increment needs it brings back its own moment, and no window.
    const past = new Set(pastRetention(archive, backups, settingsOf(id, archive), clock.now()));
    const oldest = backups.find(
      (backup) => isShown(backup) && backup.status.state === "completed" && (!past.has(backup) || isRead(backup, deps)),
    );
    return oldest?.status.startedAt ?? undefined;
  }

  return { keep: keepLog, awaited: awaitLog };
}
