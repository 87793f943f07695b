import { HoldfastError } from "@holdfast/common/errors.ts";
import { createKeyedMutex } from "#kernel/runtime/keyed-mutex.ts";

/** Larger requests go to a service one after another: side by side, none would arrive in time. */
const largeBytes = 1 << 20;
/** A busy machine's time for all requests that a controller admits at once. */
const turnMs = 60_000;
/**
 * A sixteenth of the total pace of payloads: a request that is given up is sent again, and a busy machine would give it
 * up again.
 */
const bytesPerMs = (1 << 20) / 1_000;

/** Turns of large requests, those of each service apart. */
export interface LargeRequests {
  isLarge(bytes: number): boolean;
  /** How much longer than other requests one of this size may take. */
  extraMs(bytes: number): number;
  /** Runs the work once all earlier work has ended; throws MACHINE_UNREACHABLE when that takes longer than 60 s. */
  inTurn<T>(serviceId: string, work: () => Promise<T>): Promise<T>;
}

export function createLargeRequests(monotonicMs: () => number): LargeRequests {
  const inTurnOf = createKeyedMutex();
  return {
    isLarge: (bytes) => bytes > largeBytes,
    extraMs: (bytes) => Math.ceil(bytes / bytesPerMs),
    inTurn(serviceId, work) {
      const until = monotonicMs() + turnMs;
      return inTurnOf(serviceId, async () => {
        if (monotonicMs() <= until) return work();
        const detail = "The machine did not answer. Other large requests were before this one.";
        throw new HoldfastError("MACHINE_UNREACHABLE", detail, { retryAfterS: 5 });
      });
    },
  };
}
