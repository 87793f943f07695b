/**
 * Backup that a service's data were restored from, of the same or another service. Times are milliseconds since 1970.
 */
export interface ServiceOrigin {
  readonly kind: "restore" | "fork" | "undelete" | "recover";
  /** A machine restores once for each id. */
  readonly restoreId: string;
  /** Service that the backup is of. */
  readonly serviceId: string;
  readonly backupId: string;
  /** Null: the end of the backup, or of the log behind it with `toLogEnd`. */
  readonly targetTime: number | null;
  /** A moment no later than the data of the backup; absent in restores of older versions. */
  readonly restoresTo?: number;
  /** Restores all archived log behind the backup. */
  readonly toLogEnd?: boolean;
  /** Time at which the restore finished; null until then. */
  readonly finishedAt: number | null;
}

/** The restore that a service waits for; undefined once it has its data, or if it began empty. */
export function unfinishedOrigin(spec: { readonly origin?: ServiceOrigin }): ServiceOrigin | undefined {
  return spec.origin?.finishedAt === null ? spec.origin : undefined;
}

/** True if the restore replays log behind the backup. */
export function readsLog({ targetTime, toLogEnd }: ServiceOrigin): boolean {
  return targetTime !== null || toLogEnd === true;
}
