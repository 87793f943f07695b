/** Outcome of the snapshot that keeps the data as they were before the operation; `none` has a reason. */
export interface DataSnapshot {
  readonly outcome: "taken" | "none" | "restored";
  readonly reason: string;
}
