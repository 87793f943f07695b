/** What a maintenance operation does. */
export interface MaintenanceWork {
  /** Ids of the updates that it applies. */
  readonly updates: readonly string[];
  /** It began by itself, in the window or at the end of a notice. */
  readonly automatic: boolean;
  /** Who asked for it knows that the order of texts changes: it is not taken back for that. */
  readonly acceptsTextOrder?: boolean;
  /** Null when the image stays. */
  readonly image: ImageChange | null;
  /** Of the kernel that the service's virtual machines boot from; absent when it stays. */
  readonly guestKernel?: ImageChange;
}

/** What comes under a service's data, with one restart: at least one of the two. */
export interface Replacement {
  readonly image: ImageChange | null;
  readonly guestKernel: ImageChange | null;
}

export interface ImageChange {
  readonly from: string;
  readonly to: string;
  /** Full versions of the engine in either, or of the kernel; empty when not known. */
  readonly fromVersion: string;
  readonly toVersion: string;
}
