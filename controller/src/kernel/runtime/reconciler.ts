/**
 * Converges the objects of one kind: compares desired and observed state and performs what is missing. It gets a key
 * and not a description of the change, and each call is idempotent.
 */
export interface Reconciler {
  readonly name: string;
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileOutcome>;
}

/** `settled`: nothing to do until something changes. `again`: reconcile once more after a delay, for this reason. */
export type ReconcileOutcome =
  | { readonly done: true }
  | { readonly done: false; readonly afterMs: number; readonly reason: string };

export const settled: ReconcileOutcome = { done: true };

/** The outcome after which the key is reconciled again after this many milliseconds, or on an earlier hint. */
export function again(afterMs: number, reason: string): ReconcileOutcome {
  return { done: false, afterMs, reason };
}
