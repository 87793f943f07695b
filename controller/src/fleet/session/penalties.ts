import type { Clock } from "@holdfast/common/clock.ts";

/** Machines whose stream was cut for what it sent, and which are refused for a moment. */
export interface Penalties {
  add(machineId: string): void;
  has(machineId: string): boolean;
  /** Forgets those that are over. */
  sweep(): void;
}

export function createPenalties(penaltyMs: number, clock: Clock): Penalties {
  const untilMs = new Map<string, number>();
  return {
    add: (machineId) => {
      untilMs.set(machineId, clock.monotonicMs() + penaltyMs);
    },
    has: (machineId) => (untilMs.get(machineId) ?? 0) > clock.monotonicMs(),
    sweep() {
      const nowMs = clock.monotonicMs();
      for (const [machineId, until] of untilMs) if (nowMs >= until) untilMs.delete(machineId);
    },
  };
}
