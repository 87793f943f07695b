/** What must be remembered of a service's maintenance, because nothing else tells it. */
export interface MaintenanceMemory {
  /** Since when parameters wait for a restart; null while none does. */
  readonly restartSince: number | null;
  /** Since when a machine runs under an older keeper than it would get; absent or null while none is known to. */
  readonly keeperSince?: number | null;
  /** What users were told of, and for when. */
  readonly announced: readonly AnnouncedUpdate[];
  /** The image that was tried last and rolled back; only another one is tried by itself. */
  readonly refused: RefusedImage | null;
  /** The same of the kernel of virtual machines; absent as long as none was tried. */
  readonly refusedGuestKernel?: RefusedImage | null;
}

export interface AnnouncedUpdate {
  readonly id: string;
  readonly applyAt: number;
}

/** An image or a kernel. Of two that were tried at once each is: which of them it was is not known. */
export interface RefusedImage {
  readonly image: string;
  readonly message: string;
  readonly at: number;
}

export const noMaintenance: MaintenanceMemory = { restartSince: null, announced: [], refused: null };
