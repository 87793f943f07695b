/** How many attempts may be in flight. */
export interface SlotLimits {
  readonly total: number;
  readonly organization: number;
  readonly endpoint: number;
  /** What an endpoint has of which nothing is known yet. */
  readonly starting: number;
  /** What an endpoint gets at most in one turn, so that those after it get something before it gets more. */
  readonly turn: number;
  /** All endpoints that are unwell have this part of the total, and those of an organization this part of what it may have. */
  readonly unwellPart: number;
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

/**
 * How much more one may take that has `used` of something of which `free` is left, so that nobody comes to hold more than a
 * quarter of what is then still free, or one: however many take all that they get, there is something left for who comes next.
 */
export function fairRoom(free: number, used: number): number {
  return Math.max(0, Math.ceil((free - 4 * used) / 5));
}
