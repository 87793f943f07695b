import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { BackupsSummary } from "../service/managed-service-message.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ArchiveObject, TimeSpan } from "./archive/archive.ts";
import { nextAutomatedAt } from "./archive/archive-plan.ts";
import { type BackupIndex, isVisible } from "./backup.ts";
import { type BackupKeyObject, currentVersion } from "./backup-key.ts";
import { type DrillIndex, type DrillObject, isFinished } from "./drill/drill.ts";
import { restorableOf } from "./restore/restorable.ts";
import { hasBackups } from "./service-backups.ts";

export interface BackupSummaryDeps {
  readonly archives: Pick<Collection<ArchiveObject>, "get">;
  readonly liveArchive: (serviceId: string) => ArchiveObject | undefined;
  readonly backupKeys: Pick<Collection<BackupKeyObject>, "get">;
  readonly index: BackupIndex;
  readonly drillIndex: Pick<DrillIndex, "of">;
}

const gapsMax = 20;

/**
 * Summarizes what can be restored of a service. Returns an identical object while nothing changes; undefined for an
 * engine without backups.
 */
export function createBackupSummaries(
  deps: BackupSummaryDeps,
): (service: ManagedServiceObject) => BackupsSummary | undefined {
  const cached = new WeakMap<ManagedServiceObject, { readonly inputs: string; readonly summary: BackupsSummary }>();
  return (service) => {
    if (!hasBackups(service)) return undefined;
    const { id } = service.metadata;
    const stored = deps.index.of(id);
    const revisions = [deps.archives.get(id), deps.backupKeys.get(id), ...stored].map(
      (each) => each?.modRevision ?? 0n,
    );
    const drill = lastDrillOf(id, deps);
    const inputs = `${drill?.metadata.id ?? ""} ${revisions.join(" ")} ${deps.liveArchive(id)?.status.log.at(-1)?.toTime ?? 0}`;
    const before = cached.get(service);
    if (before?.inputs === inputs) return before.summary;
    const summary = summaryOf(service, deps);
    cached.set(service, { inputs, summary });
    return summary;
  };
}

function summaryOf({ metadata, spec }: ManagedServiceObject, deps: BackupSummaryDeps): BackupsSummary {
  const { liveArchive, backupKeys, index } = deps;
  const { id } = metadata;
  const archive = liveArchive(id);
  const key = backupKeys.get(id)?.object;
  const visible = index.of(id).flatMap(({ object }) => (isVisible(object) ? [object] : []));
  const completed = visible.filter(({ status }) => status.state === "completed");
  const { span, gaps } = restorableOf(spec.databaseType, archive, completed);
  const drill = lastDrillOf(id, deps);
  const last = completed.at(-1)?.status.finishedAt ?? null;
  return {
    gaps: gaps.slice(-gapsMax).map(rangeMessage),
    ...(span && { restorable: rangeMessage(span) }),
    ...(last === null ? {} : { lastCompletedAt: timestampFromMs(last) }),
    ...(archive && { nextAt: timestampFromMs(nextAutomatedAt(archive, visible)) }),
    ...(key && { keyVersion: currentVersion(key).version }),
    ...(drill && { lastDrill: drillSummary(drill) }),
  };
}

/** The last drill that ended. */
function lastDrillOf(serviceId: string, { drillIndex }: BackupSummaryDeps): DrillObject | undefined {
  return drillIndex.of(serviceId).findLast(isFinished);
}

function drillSummary({ metadata, status }: DrillObject) {
  const { state, error, finishedAt } = status;
  return {
    id: metadata.id,
    passed: state === "completed",
    finishedAt: timestampFromMs(finishedAt ?? metadata.updatedAt),
    ...(error && { error: error.message }),
  };
}

function rangeMessage({ from, to }: TimeSpan) {
  return { from: timestampFromMs(from), to: timestampFromMs(to) };
}
