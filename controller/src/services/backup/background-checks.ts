import { inBackground } from "@holdfast/common/background.ts";
import { createSemaphore } from "@holdfast/common/concurrency/semaphore.ts";
import type { Log } from "@holdfast/common/log.ts";

/** Progress of one check. */
export type CheckState =
  | { readonly kind: "running"; readonly bytes: number }
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly error: Error };

/**
 * Checks that take longer than a reconcile may. At most two run concurrently. Their state is in memory only: after a
 * restart the caller starts them again.
 */
export interface BackgroundChecks {
  /** State of a check, undefined if it was not started. The result of a finished check is returned once. */
  poll(id: string): CheckState | undefined;
  /** Starts a check, unless it is already running. */
  begin(id: string, check: (onProgress: (bytes: number) => void) => Promise<unknown>): void;
}

const concurrencyMax = 2;

/** `onEnd` is called with the id of each finished check. */
export function createBackgroundChecks(log: Pick<Log, "error">, onEnd: (id: string) => void): BackgroundChecks {
  const states = new Map<string, CheckState>();
  const semaphore = createSemaphore(concurrencyMax);

  async function run(id: string, check: (onProgress: (bytes: number) => void) => Promise<unknown>): Promise<void> {
    try {
      await check((bytes) => states.set(id, { kind: "running", bytes }));
      states.set(id, { kind: "passed" });
    } catch (error) {
      states.set(id, { kind: "failed", error: error instanceof Error ? error : new Error(String(error)) });
    }
    onEnd(id);
  }

  return {
    poll(id) {
      const state = states.get(id);
      if (state !== undefined && state.kind !== "running") states.delete(id);
      return state;
    },
    begin(id, check) {
      if (states.has(id)) return;
      states.set(id, { kind: "running", bytes: 0 });
      inBackground(
        log,
        "check of a backup",
        semaphore.run(() => run(id, check)),
      );
    },
  };
}
