import { useState } from "preact/hooks";

/** A change that a button requests. */
export interface Action {
  readonly isBusy: boolean;
  readonly error: unknown;
  /** Starts the change, unless one is running. */
  run(change: () => Promise<unknown>): void;
}

export function useAction(): Action {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  return {
    isBusy,
    error,
    run(change) {
      if (isBusy) return;
      setBusy(true);
      setError(undefined);
      change()
        .catch((failure: unknown) => setError(failure))
        .finally(() => setBusy(false));
    },
  };
}
