/** Outcome of the snapshot of the data before an operation; `reason` is empty except for `none`. */
export interface DataSnapshot {
  readonly outcome: "taken" | "none" | "restored";
  readonly reason: string;
}
