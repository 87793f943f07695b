/** What a maintenance operation does. */
export interface MaintenanceWork {
  /** Ids of the updates that it applies. */
  readonly updates: readonly string[];
  /** It began by itself, in the window or at the end of a notice. */
  readonly automatic: boolean;
  /** The caller accepts that the sort order of text changes: the update is not rolled back for that. */
  readonly acceptsTextOrder?: boolean;
  /** The service's machines are restarted unchanged, for newer keepers. */
  readonly startsMachines?: true;
  /** Updates or restarts take one node after another, replicas first; absent: all at once, with clients kept out. */
  readonly inTurn?: true;
  /** Null when the image stays. */
  readonly image: ImageChange | null;
  /**
   * Newest moment before the operation that a restore can bring the data back to, milliseconds since 1970; absent where
   * there is none, and where neither image nor kernel changes.
   */
  readonly restorePoint?: number;
  /** Of the kernel that the service's virtual machines boot from; absent when it stays. */
  readonly guestKernel?: ImageChange;
}

/** Work of an upgrade to another version of the engine: always with another image. */
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
  /** Full versions of the engine in either, or of the kernel; empty when not known. */
  readonly fromVersion: string;
  readonly toVersion: string;
}
