/** What a maintenance operation does. */
export interface MaintenanceWork {
  /** Ids of the updates that it applies. */
  readonly updates: readonly string[];
  /** It began by itself, in the window or at the end of a notice. */
  readonly automatic: boolean;
  /** Who asked for it knows that the order of texts changes: it is not taken back for that. */
  readonly acceptsTextOrder?: boolean;
  /** Null when the engine is only restarted. */
  readonly image: ImageChange | null;
}

export interface ImageChange {
  readonly from: string;
  readonly to: string;
  /** Full versions of the engine in either; empty when not known. */
  readonly fromVersion: string;
  readonly toVersion: string;
}
