/** State of a service's maintenance that cannot be derived from other objects. Times are milliseconds since 1970. */
export interface MaintenanceRecord {
  /** Time since which parameters await a restart; null if none does. */
  readonly restartSince: number | null;
  /** Time since which a machine runs under an outdated keeper; absent or null if none does. */
  readonly keeperSince?: number | null;
  /** Announced updates, each with the time at which it will be applied. */
  readonly announced: readonly AnnouncedUpdate[];
  /**
   * Image that was last tried and rolled back, so that it is not applied automatically again; null if there is none.
   */
  readonly refused: RefusedImage | null;
  /** Kernel of virtual machines that was last tried and rolled back; absent until one was tried. */
  readonly refusedGuestKernel?: RefusedImage | null;
}

/** An announced update, and the time at which it will be applied, in milliseconds since 1970. */
export interface AnnouncedUpdate {
  readonly id: string;
  readonly applyAt: number;
}

/**
 * An image or kernel that was rolled back. If both were tried together, both are refused, because the cause is unknown.
 */
export interface RefusedImage {
  readonly image: string;
  readonly message: string;
  readonly at: number;
}

/** Record of a new service. */
export const noMaintenance: MaintenanceRecord = { restartSince: null, announced: [], refused: null };
