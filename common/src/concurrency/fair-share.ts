import { createKeyedCounter } from "./keyed-counter.ts";

/** Capacity of one controller for calls to targets that users choose, and its division among organizations. */
export interface FairShareLimits {
  readonly total: number;
  readonly organization: number;
  /** Fraction of `total`, and of `organization`, that unhealthy targets may use together. */
  readonly unhealthyShare: number;
}

/**
 * Number of additional slots for a holder of `used` slots while `free` slots remain: the holder may have up to a
 * quarter of the slots that are then still free, but at least one. If many holders take their full share, some slots
 * remain for the next one.
 */
export function fairShareOf(free: number, used: number): number {
  return Math.max(0, Math.ceil((free - 4 * used) / 5));
}

/** Slots in flight, overall and per organization, and how many of them belong to unhealthy targets. */
export interface FairShare {
  /** Adds slots of an organization; a negative number releases them. */
  add(organizationId: string, slots: number, unhealthy: boolean): void;
  /** Number of further slots for a target of the organization that has `used` slots. */
  available(organizationId: string, used: number, unhealthy: boolean): number;
  /** True if no slot is free. */
  readonly full: boolean;
}

/** Key of the total of all organizations. */
const total = "";

export function createFairShare(limits: FairShareLimits): FairShare {
  const unhealthyMax = (slots: number) => Math.floor(slots * limits.unhealthyShare);
  const all = createKeyedCounter();
  const ofUnhealthy = createKeyedCounter();

  return {
    add(organizationId, slots, unhealthy) {
      for (const key of [total, organizationId]) {
        all.add(key, slots);
        if (unhealthy) ofUnhealthy.add(key, slots);
      }
    },
    available(organizationId, used, unhealthy) {
      const organizationSlots = all.of(organizationId);
      const free = Math.min(
        limits.organization - organizationSlots,
        fairShareOf(limits.total - all.of(total), organizationSlots),
      );
      const share = fairShareOf(free, used);
      if (!unhealthy) return share;
      return Math.min(
        share,
        unhealthyMax(limits.organization) - ofUnhealthy.of(organizationId),
        unhealthyMax(limits.total) - ofUnhealthy.of(total),
      );
    },
    get full() {
      return all.of(total) >= limits.total;
    },
  };
}
