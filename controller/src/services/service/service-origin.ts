/**
 * Backup that a service's data were restored from, of the same or another service. Times are milliseconds since 1970.
 */
export interface ServiceOrigin {
  readonly kind: "restore" | "fork" | "undelete" | "recover";
  /** Id of the restore. A machine restores once for each id. */
  readonly restoreId: string;
  /** Service that the backup is of. */
  readonly serviceId: string;
  readonly backupId: string;
  /** Milliseconds since 1970; null: the end of the backup, or of the log after it with `toLogEnd`. */
  readonly targetTime: number | null;
  /** Time of the backup's data: they contain all commits before it. Absent in restores of older releases. */
  readonly restoresTo?: number;
  /** True to restore all archived log after the backup. */
  readonly toLogEnd?: boolean;
  /** Time at which the restore finished; null until then. */
  readonly finishedAt: number | null;
}

/** The restore that a service waits for; undefined once it is finished, or if there is none. */
export function unfinishedOrigin(spec: { readonly origin?: ServiceOrigin }): ServiceOrigin | undefined {
  return spec.origin?.finishedAt === null ? spec.origin : undefined;
}

/** True if the restore replays log after the backup. */
export function readsLog({ targetTime, toLogEnd }: ServiceOrigin): boolean {
  return targetTime !== null || toLogEnd === true;
}
