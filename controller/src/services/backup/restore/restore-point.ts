import { engineOf, parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { ArchiveObject, BackupSource } from "../archive/archive.ts";
import { withoutDamaged } from "../backup-chain.ts";
import { type BackupObject, firstRecoveryPoint } from "../backup.ts";
import type { TimeSpan } from "../archive/archive.ts";
import { logTo, restorableOf } from "./restorable.ts";

/** How to restore a point in time: a backup, and the end of the replay of its log. */
export interface ChosenPoint {
  readonly backupId: string;
  /** Milliseconds since 1970; null: the end of the backup. */
  readonly targetTime: number | null;
}

/**
 * The restore for a point in time (milliseconds since 1970). With a log: the newest base backup whose log contains it;
 * without one: the newest backup at or before it. Throws RESTORE_POINT_UNAVAILABLE with `earliest`, `latest` and
 * `gaps`, and for an engine whose backups are restored by id alone.
 */
export function choosePoint(
  point: number,
  databaseType: string,
  archive: ArchiveObject | undefined,
  backups: readonly BackupObject[],
): ChosenPoint {
  const completed = backups.filter(({ status }) => status.state === "completed");
  if (engineOf(databaseType)?.backups?.byIdOnly === true) throw byIdOnly(databaseType, completed);
  const isExact = engineOf(databaseType)?.backups?.restorePoints === "any_second";
  const log = archive?.status.log ?? [];
  const leadsTo = (backup: BackupObject) => (logTo(backup, log, point)?.at(-1)?.toTime ?? 0) >= point;
  const before = withoutDamaged(completed).findLast(
    (backup) => (firstRecoveryPoint(backup) ?? Number.POSITIVE_INFINITY) <= point && (!isExact || leadsTo(backup)),
  );
  const { span, gaps } = restorableOf(databaseType, archive, completed);
  const isWithin = span !== undefined && point >= span.from && point <= span.to;
  if (isWithin && before !== undefined && !isExact) return { backupId: before.metadata.id, targetTime: null };
  if (!isWithin || before === undefined || gaps.some(({ from, to }) => point > from && point < to))
    throw unavailable(point, span, gaps);
  return { backupId: before.metadata.id, targetTime: point };
}

function byIdOnly(databaseType: string, completed: readonly BackupObject[]): HoldfastError {
  const newest = withoutDamaged(completed).at(-1)?.metadata.id;
  const advice = newest === undefined ? "There is none yet." : `The newest one is ${newest}.`;
  return new HoldfastError(
    "RESTORE_POINT_UNAVAILABLE",
    `A ${databaseType} cannot be restored to a time: restore a backup by its id. ${advice}`,
    { members: { earliest: null, latest: null, gaps: [] } },
  );
}

function unavailable(point: number, span: TimeSpan | undefined, gaps: readonly TimeSpan[]): HoldfastError {
  const text = (ms: number) => new Date(ms).toISOString();
  const gap = gaps.find(({ from, to }) => point > from && point < to);
  const reason = () => {
    if (span === undefined) return "Nothing can be restored yet.";
    if (gap === undefined)
      return `${text(point)} cannot be restored; the earliest time is ${text(span.from)}, the latest ${text(span.to)}.`;
    const nearest = `restore to ${text(gap.from)} or earlier, or to ${text(gap.to)} or later`;
    return `${text(point)} is in a gap of the log from ${text(gap.from)} to ${text(gap.to)}: ${nearest}.`;
  };
  return new HoldfastError("RESTORE_POINT_UNAVAILABLE", reason(), {
    members: {
      earliest: span === undefined ? null : text(span.from),
      latest: span === undefined ? null : text(span.to),
      gaps: gaps.map(({ from, to }) => ({ from: text(from), to: text(to) })),
    },
  });
}

// A backup is restored by the engine version that it was taken with; the service may have a newer one by now.

/** The source with a backup's version, and only the parameters that exist in this version. */
export function sourceIn(version: string, source: BackupSource): BackupSource {
  return version === source.version ? source : { ...source, version, parameters: parametersIn(version, source) };
}

/**
 * The service with a backup's version, in any image that has it, and only the parameters that exist in this version.
 */
export function serviceIn(version: string, service: ManagedServiceObject): ManagedServiceObject {
  const { spec } = service;
  if (version === spec.version) return service;
  return { ...service, spec: { ...spec, version, parameters: parametersIn(version, spec), image: "" } };
}

function parametersIn(
  version: string,
  { databaseType, parameters }: Pick<BackupSource, "databaseType" | "parameters">,
): Readonly<Record<string, string>> {
  const supported = parametersOf(databaseType, version);
  return Object.fromEntries(Object.entries(parameters).filter(([name]) => supported.has(name)));
}
