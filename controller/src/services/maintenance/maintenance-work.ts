/** Work of a maintenance operation. */
export interface MaintenanceWork {
  /** Ids of the applied updates. */
  readonly updates: readonly string[];
  /** True if the platform started it, in the window or at the end of a notice. */
  readonly automatic: boolean;
  /** True if the caller accepts a change of the sort order of text, so that the update is not rolled back for it. */
  readonly acceptsTextOrder?: boolean;
  /** True if the service's machines restart with the same image, to start newer keepers. */
  readonly startsMachines?: true;
  /** True if nodes are updated one after another, replicas first. Absent: all together, while no client is admitted. */
  readonly inRollout?: true;
  /** Change of the image; null if it does not change. */
  readonly image: ImageChange | null;
  /**
   * Newest recovery point before the operation, in milliseconds since 1970. Absent if there is none, and if neither
   * image nor kernel changes.
   */
  readonly restorePoint?: number;
  /** Change of the kernel from which the service's virtual machines boot; absent if it does not change. */
  readonly guestKernel?: ImageChange;
}

/** Work of an upgrade to another version of the engine, which also changes the image. */
export interface UpgradeWork extends MaintenanceWork {
  readonly version: VersionChange;
}

/** Versions of an engine in the format of the API, such as `8.1`. */
export interface VersionChange {
  readonly from: string;
  readonly to: string;
}

/** Change of image, kernel or both, with the same data and one restart. */
export interface Replacement {
  readonly image: ImageChange | null;
  readonly guestKernel: ImageChange | null;
  /** Change of the engine's version; absent if both images have the same. */
  readonly version?: VersionChange;
}

export interface ImageChange {
  readonly from: string;
  readonly to: string;
  /** Full versions of the engine, or of the kernel; empty when unknown. */
  readonly fromVersion: string;
  readonly toVersion: string;
}
