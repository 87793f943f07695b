import type { Clock } from "@holdfast/common/clock.ts";
import { createTokenBuckets } from "@holdfast/common/token-bucket.ts";
import type { SessionLimits } from "./session-limits.ts";

/** How many streams each machine has, and may open. */
export interface StreamPlaces {
  /** False when the machine has too many, or opens them too often. */
  take(machineId: string): boolean;
  leave(machineId: string): void;
}

export function createStreamPlaces(
  { streamsPerMachine, openings }: Pick<SessionLimits, "streamsPerMachine" | "openings">,
  clock: Clock,
): StreamPlaces {
  const counts = new Map<string, number>();
  const rates = createTokenBuckets(openings, clock.monotonicMs);
  return {
    take(machineId) {
      const count = counts.get(machineId) ?? 0;
      if (count >= streamsPerMachine || !rates.admits(machineId, 1)) return false;
      counts.set(machineId, count + 1);
      return true;
    },
    leave(machineId) {
      const rest = (counts.get(machineId) ?? 1) - 1;
      if (rest === 0) counts.delete(machineId);
      else counts.set(machineId, rest);
    },
  };
}
