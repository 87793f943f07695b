import type { SharedSlots } from "#kernel/runtime/slot-counts.ts";

/** How many attempts may be in flight. */
export interface SlotLimits extends SharedSlots {
  readonly endpoint: number;
  /** What an endpoint has of which nothing is known yet. */
  readonly starting: number;
  /** What an endpoint gets at most in one turn, so that those after it get something before it gets more. */
  readonly turn: number;
}

/** Of one controller. */
export const slotLimits: SlotLimits = {
  total: 1_024,
  organization: 128,
  endpoint: 16,
  starting: 4,
  turn: 4,
  unwellPart: 1 / 4,
};

/**
 * What an endpoint may have in flight after an attempt ended: one more for each success, half for each failure, never
 * nothing. So one that hangs is soon down to one, one that hangs now and then stays low, and successes alone lead back.
 */
export function shareAfter(share: number, succeeded: boolean, { endpoint }: SlotLimits): number {
  return succeeded ? Math.min(share + 1, endpoint) : Math.max(Math.floor(share / 2), 1);
}

/** Fails more than one of which nothing is known can be expected to. */
export function isUnwellShare(share: number, { starting }: SlotLimits): boolean {
  return share < starting;
}
