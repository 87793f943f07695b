import { countBy, type ServiceGauge } from "#kernel/metrics/service-gauge.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type BackupObject, isVisible, serviceOfBackup } from "./backup.ts";

/** Metrics of a service's backups: their number by state, and the last completed one of each kind. */
export function backupMetrics(backups: Pick<Collection<BackupObject>, "by">): ServiceGauge[] {
  const of = (serviceId: string) =>
    backups
      .by(serviceOfBackup, serviceId)
      .map(({ object }) => object)
      .filter(isVisible);
  const ofLast = (name: string, help: string, valueOf: (status: BackupObject["status"]) => number | null) => ({
    name,
    help,
    labels: ["kind"],
    *read(id: string) {
      const completed = of(id).filter(({ status }) => status.state === "completed");
      for (const [kind, group] of Map.groupBy(completed, ({ spec }) => spec.kind)) {
        const last = group.reduce((a, b) => (endOf(b) > endOf(a) ? b : a));
        const value = valueOf(last.status);
        if (value !== null) yield { labels: { kind }, value };
      }
    },
  });
  return [
    {
      name: "backups",
      help: "Backups of the service, by state",
      labels: ["state"],
      read: (id) => Array.from(countBy(of(id), stateOf), ([state, value]) => ({ labels: { state }, value })),
    },
    ofLast(
      "backup_last_finish_time_seconds",
      "End of the last completed backup of the kind, in seconds since 1970",
      (status) => (status.finishedAt === null ? null : status.finishedAt / 1_000),
    ),
    ofLast(
      "backup_last_size_bytes",
      "Stored bytes of the last completed backup of the kind",
      ({ sizeBytes }) => sizeBytes,
    ),
    ofLast("backup_last_duration_seconds", "Duration of the last completed backup of the kind", (status) =>
      status.finishedAt === null || status.startedAt === null ? null : (status.finishedAt - status.startedAt) / 1_000,
    ),
  ];
}

function stateOf({ status }: BackupObject): string {
  return status.state;
}

function endOf({ status }: BackupObject): number {
  return status.finishedAt ?? 0;
}
