import { countBy, type ServiceFigure } from "#kernel/metrics/service-figure.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { type BackupObject, isShown, serviceOfBackup } from "./backup.ts";

/** The backups of a service that are there, and the last of each kind that was completed. */
export function backupFigures(backups: Pick<Collection<BackupObject>, "by">): ServiceFigure[] {
  const of = (serviceId: string) =>
    backups
      .by(serviceOfBackup, serviceId)
      .map(({ object }) => object)
      .filter(isShown);
  const ofLast = (name: string, help: string, valueOf: (status: BackupObject["status"]) => number | null) => ({
    name,
    help,
    labels: ["kind"],
    *read(id: string) {
      const completed = of(id).filter(({ status }) => status.state === "completed");
      for (const [kind, group] of Map.groupBy(completed, ({ spec }) => spec.kind)) {
        const last = group.reduce((one, other) => (endOf(other) > endOf(one) ? other : one));
        const value = valueOf(last.status);
        if (value !== null) yield { labels: { kind }, value };
      }
    },
  });
  return [
    {
      name: "backups",
      help: "Backups of the service that are there, by their state",
      labels: ["state"],
      read: (id) => Array.from(countBy(of(id), stateOf), ([state, value]) => ({ labels: { state }, value })),
    },
    ofLast(
      "backup_last_finish_time_seconds",
      "When the last completed backup of the kind ended, since 1970",
      (status) => (status.finishedAt === null ? null : status.finishedAt / 1_000),
    ),
    ofLast(
      "backup_last_size_bytes",
      "What the last completed backup of the kind has stored",
      ({ sizeBytes }) => sizeBytes,
    ),
    ofLast("backup_last_duration_seconds", "How long the last completed backup of the kind took", (status) =>
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
