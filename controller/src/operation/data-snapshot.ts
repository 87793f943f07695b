/** Outcome of the snapshot that preserves the data before an operation; `none` has a reason. */
export interface DataSnapshot {
  readonly outcome: "taken" | "none" | "restored";
  readonly reason: string;
}
