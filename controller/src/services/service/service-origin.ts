/** Where a service's data came from: a backup, of this or of another service. Times are milliseconds since 1970. */
export interface ServiceOrigin {
  readonly kind: "restore" | "fork" | "undelete" | "recover";
  /** Its machine restores once for each. */
  readonly restoreId: string;
  /** Whose backup it is. */
  readonly serviceId: string;
  readonly backupId: string;
  /** Null: what the backup has, or all of the log behind it. */
  readonly targetTime: number | null;
  /** All that the log behind the backup has. */
  readonly toLogEnd?: boolean;
  /** When all of it was there; null until then. */
  readonly finishedAt: number | null;
}

/** The restore that a service waits for; undefined when it has its data, or began empty. */
export function unfinishedOrigin(spec: { readonly origin?: ServiceOrigin }): ServiceOrigin | undefined {
  return spec.origin?.finishedAt === null ? spec.origin : undefined;
}

/** Is log read behind the backup? */
export function readsLog({ targetTime, toLogEnd }: ServiceOrigin): boolean {
  return targetTime !== null || toLogEnd === true;
}
