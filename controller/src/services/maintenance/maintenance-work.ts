/** Work of a maintenance operation. */
export interface MaintenanceWork {
  /** Ids of the updates that it applies. */
  readonly updates: readonly string[];
  /** True if it began by itself, in the window or at the end of a notice. */
  readonly automatic: boolean;
  /** True: the caller accepts a change of the sort order of text, so the update is not rolled back for that. */
  readonly acceptsTextOrder?: boolean;
  /** True: the service's machines are restarted unchanged, to start newer keepers. */
  readonly startsMachines?: true;
  /** True: nodes are updated one after another, replicas first. Absent: all at once, while clients are locked out. */
  readonly inRollout?: true;
  /** Null when the image stays. */
  readonly image: ImageChange | null;
  /**
   * Newest recovery point before the operation, in milliseconds since 1970. Absent where there is none, and where
   * neither image nor kernel changes.
   */
  readonly restorePoint?: number;
  /** Change of the kernel from which the service's virtual machines boot; absent when it stays. */
  readonly guestKernel?: ImageChange;
}

/** Work of an upgrade to another version of the engine, which always has another image. */
export interface UpgradeWork extends MaintenanceWork {
  readonly version: VersionChange;
}

/** Versions of an engine, as users write them: `8.1`. */
export interface VersionChange {
  readonly from: string;
  readonly to: string;
}

/** Image, kernel or both, replaced under a service's data with one restart. */
export interface Replacement {
  readonly image: ImageChange | null;
  readonly guestKernel: ImageChange | null;
  /** Absent where the image has the same version of the engine. */
  readonly version?: VersionChange;
}

export interface ImageChange {
  readonly from: string;
  readonly to: string;
  /** Full versions of the engine, or of the kernel; empty when unknown. */
  readonly fromVersion: string;
  readonly toVersion: string;
}
