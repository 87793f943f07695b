/** Converges one kind of object. Told which key, never what changed. */
export interface Reconciler {
  readonly name: string;
  reconcile(key: string, signal: AbortSignal): Promise<Outcome>;
}

/** `settled`: nothing to do until something changes. `again`: look once more after a time, for this reason. */
export type Outcome =
  | { readonly done: true }
  | { readonly done: false; readonly afterMs: number; readonly reason: string };

export const settled: Outcome = { done: true };

/** Look at the key again after so many milliseconds, or at an earlier hint. */
export function again(afterMs: number, reason: string): Outcome {
  return { done: false, afterMs, reason };
}
