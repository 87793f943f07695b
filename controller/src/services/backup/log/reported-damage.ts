import { timestampMs } from "@bufbuild/protobuf/wkt";
import { dataObjectOf } from "@holdfast/common/backup/object-names.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { operationKind } from "#operation/operation.ts";
import { again, type ReconcileOutcome } from "#kernel/runtime/reconciler.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { serviceSubject, sourceOfRestore } from "../../service/managed-service.ts";
import { taskTarget } from "../../service/member/member-roles.ts";
import { archiveKind, type ArchiveObject, type LogHole } from "../archive/archive.ts";
import type { ArchiveWorkDeps } from "../archive/archive-deps.ts";
import { backupKind } from "../backup.ts";
import { backupOperations } from "../backup-operations.ts";
import { holeAt } from "./log-damage.ts";
import { isInHole, lastStored, withHole } from "./log-holes.ts";
import { reportedRanges } from "./log-archive.ts";

/** Damage that restores and drills reported. */
export interface ReportedDamage {
  /**
   * Reads the objects that machines reported as lost or damaged. A confirmed hole in the log is recorded with an event;
   * a backup is verified completely. Undefined if nothing changed.
   */
  record(archive: Stored<ArchiveObject>, signal: AbortSignal): Promise<ReconcileOutcome | undefined>;
}

/** An object that a machine found lost or damaged, at a time in milliseconds since 1970. */
interface DamageReport {
  readonly key: string;
  readonly at: number;
}

/** Maximum number of remembered reports; beyond it all are forgotten, and their objects are read again. */
const checkedMax = 10_000;

type ReportedDamageDeps = Pick<
  ArchiveWorkDeps,
  | "archives"
  | "backups"
  | "backupKeys"
  | "index"
  | "services"
  | "fleet"
  | "drillIndex"
  | "objects"
  | "sealer"
  | "newId"
  | "begin"
  | "clock"
  | "log"
>;

export function createReportedDamage(deps: ReportedDamageDeps): ReportedDamage {
  const { archives, backupKeys, index, services, fleet, clock, log } = deps;
  /** Reports that turned out to be wrong. Each is checked once by this controller. */
  const checked = new Set<string>();

  /** Reports of restores in progress or in Error, and of drills. */
  function reportsOf(id: string): DamageReport[] {
    const restoring = services.by(sourceOfRestore, id).flatMap(({ object }) => {
      const restore = fleet.observation(taskTarget(object).id)?.instance.restore;
      if (restore === undefined || restore.restoreId !== object.spec.origin?.restoreId) return [];
      const { damagedObject: key, since } = restore;
      return [{ key, at: since === undefined ? object.metadata.createdAt : timestampMs(since) }];
    });
    const drilled = deps.drillIndex.of(id).flatMap(({ metadata, status }) => {
      const { damagedObject: key = "", finishedAt } = status;
      return [{ key, at: finishedAt ?? metadata.updatedAt }];
    });
    return [...restoring, ...drilled].filter(({ key }) => key !== "");
  }

  async function recordHole(
    archive: Stored<ArchiveObject>,
    { term, sequence }: { readonly term: number; readonly sequence: number },
    signal: AbortSignal,
  ): Promise<ReconcileOutcome | undefined> {
    const { object } = archive;
    const { id, organizationId } = object.metadata;
    const service = services.get(id)?.object;
    const reportOf = (machineId: string) => fleet.observation(machineId)?.instance.archive;
    const ranges = service === undefined ? object.status.log : reportedRanges(object, service, reportOf);
    const range = ranges.find(
      (each) => each.term === term && sequence >= each.firstSequence && sequence <= lastStored(each),
    );
    const key = backupKeys.get(id)?.object;
    if (range === undefined || key === undefined || isInHole(range, sequence)) return undefined;
    const hole = await holeAt(id, range, sequence, key, clock.now(), deps);
    if (hole === undefined) return undefined;
    signal.throwIfAborted();
    const holes = withHole(range.holes ?? [], hole);
    const after = ranges.map((each) => (each === range ? { ...range, holes } : each));
    const unit = deps.begin();
    unit.update(archiveKind, archive, { ...object, status: { ...object.status, log: after } });
    unit.event(
      gapEvent({ serviceId: id, organizationId, since: hole.from, message: messageOf(hole, service === undefined) }),
    );
    await archives.untilRevision(await unit.commit(signal), 1_000);
    const { firstSequence, lastSequence } = hole;
    log.warn("stored log is damaged", { service: id, term, firstSequence, lastSequence });
    return again(0, "hole recorded");
  }

  /** One damaged part proves nothing about the others, so all of them are read. */
  async function verify(
    backupId: string,
    reportedAt: number,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome | undefined> {
    const backup = index.get(backupId);
    const { spec, status, metadata } = backup?.object ?? {};
    if (backup === undefined || spec === undefined || status?.state !== "completed" || metadata === undefined)
      return undefined;
    const isVerified = status.verifiedAt !== null && status.verifiedAt >= reportedAt;
    if (status.isDamaged === true || spec.verification !== null || isVerified) return undefined;
    const { organizationId } = metadata;
    const of = { id: deps.newId(), subject: serviceSubject(spec.serviceId), organizationId, now: clock.now() };
    const operation = newOperation({ ...of, type: backupOperations.verify_backup });
    const unit = deps.begin();
    unit.create(operationKind, operation);
    const { object } = backup;
    unit.update(backupKind, backup, { ...object, spec: { ...object.spec, verification: operation.metadata.id } });
    await deps.backups.untilRevision(await unit.commit(signal), 1_000);
    log.warn("a reader reported a damaged backup; verification started", { backup: backupId });
    return again(0, "backup is verified");
  }

  return {
    async record(archive, signal) {
      const { id } = archive.object.metadata;
      for (const { key, at } of reportsOf(id)) {
        const report = `${at} ${key}`;
        if (checked.has(report)) continue;
        const found = dataObjectOf(id, key);
        const outcome =
          found?.kind === "log"
            ? await recordHole(archive, found, signal)
            : found && (await verify(found.backup, at, signal));
        // Checked reports need no second check: a hole is in the archive, and a verification begins only once.
        if (checked.size >= checkedMax) checked.clear();
        checked.add(report);
        if (outcome !== undefined) return outcome;
      }
      return undefined;
    },
  };
}

function messageOf({ from, to, firstSequence, lastSequence }: LogHole, isDeleted: boolean): string {
  const count = lastSequence - firstSequence + 1;
  const [before, after] = [from, to].map((ms) => new Date(ms).toISOString());
  const next = isDeleted
    ? "Restore to an earlier time, or from a later backup."
    : `Restore to ${before} or earlier, or to a time after the first backup that begins after ${after}; if there is none, a new backup begins now.`;
  const objects = count === 1 ? "An object" : `${count} objects`;
  return `${objects} of the log in the object store ${count === 1 ? "is" : "are"} lost or damaged. ${next}`;
}

interface LogGap {
  readonly serviceId: string;
  readonly organizationId: string;
  /** The last time before the gap that can be restored, in milliseconds since 1970. */
  readonly since: number;
  /** Cause of the gap and advice, for users. */
  readonly message: string;
}

/** The `backup.gap` event of a service's log. */
export function gapEvent({ serviceId, organizationId, since, message }: LogGap): NewEvent {
  return {
    type: "backup.gap",
    organizationId,
    objectKind: "managed-service",
    objectId: serviceId,
    data: { service_id: serviceId, since: new Date(since).toISOString(), message },
  };
}
