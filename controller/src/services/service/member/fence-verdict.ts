import { rightMs } from "@holdfast/common/right.ts";
import { knownWithinMs, rightMarginMs } from "#fleet/session/rights.ts";
import { silentAfterMs } from "./suspicion.ts";
import type { MemberWord } from "./succession-verdict.ts";

/** After so long without anybody to take its place, the old primary is named again. */
export const fenceWithinMs = 30_000;
/** When a right that was granted is over for certain, whatever clocks and pauses there are. */
export const lapsedAfterMs = rightMs + rightMarginMs;

/** What a controller knows of the old primary's right, counted by its own clock. */
export interface RightWord {
  /** For so long this controller has known that nobody gets the right any more. */
  readonly revokedForMs: number;
  /** For so long no controller has granted it, and none does any more; undefined while one of them has not said so. */
  readonly ungrantedForMs: number | undefined;
  /**
   * The machine's host has ended all of it after every controller refused it the right: no earlier right counts, and
   * what was started since gets none.
   */
  readonly isProven?: boolean;
  /** Its deadline is by a clock that stops with the machine, as a virtual machine's: no time proves that it is over. */
  readonly neverLapses?: boolean;
}

/** What a member that may take its place said when it was asked just now. */
export interface Candidate {
  readonly nodeId: string;
  readonly timeline: number;
  /** Positions of different histories cannot be compared; empty where timelines say it. */
  readonly history?: string;
  /** What it has received, as a number. */
  readonly position: bigint;
  /** It has had the same for so long. */
  readonly quietMs: number;
  readonly streaming: boolean;
  /** Only asked how far it is: it is no voucher. */
  readonly isOther?: boolean;
  /** A voucher that the old primary's agent may not count, as after a restart: named only once that one has ended. */
  readonly isUncounted?: boolean;
}

export type FenceVerdict =
  | { readonly kind: "wait" }
  | { readonly kind: "name"; readonly nodeId: string }
  /** Nobody takes its place: it is named again. */
  | { readonly kind: "goBack" };

/**
 * Pure: does the right that controllers granted count no more? A controller that has not acknowledged the revocation may not hear of it
 * for `knownWithinMs`, and then grants for the last time.
 */
export function isLapsed({ revokedForMs, ungrantedForMs = 0, neverLapses = false }: RightWord): boolean {
  if (neverLapses) return false;
  return revokedForMs >= knownWithinMs + lapsedAfterMs || ungrantedForMs >= lapsedAfterMs;
}

/** For so long an agent that still answers may end its engine by itself, before the host ends the whole machine. */
const endsByItselfMs = 2_000;

/**
 * Pure: is the host of the old primary's machine told to end it? Only once all controllers refuse the machine its
 * right, as it may start again. `heardAgoMs`: since its agent asked for the right.
 */
export function isToBeFenced({ revokedForMs, ungrantedForMs }: RightWord, heardAgoMs: number): boolean {
  return ungrantedForMs !== undefined && (heardAgoMs - revokedForMs >= silentAfterMs || revokedForMs >= endsByItselfMs);
}

/**
 * Pure: who is named after a primary that fell silent. Its engine is certain to have ended once its agent says so under
 * the new settings, once the host has ended its machine, or once its right has lapsed and no voucher can have confirmed
 * it since: one that receives nothing confirms nothing. `candidates`: the replicas that answered. `needed`: each
 * acknowledged commit is on one of these, so all must have answered; undefined where commits wait for no replica.
 * `forced`: nobody but this one is named, whatever it lacks.
 */
export function fenceVerdict(
  from: MemberWord,
  right: RightWord,
  candidates: readonly Candidate[],
  needed?: readonly string[],
  forced?: string,
): FenceVerdict {
  const hasEnded = right.isProven === true || (from.isHeld && from.engine !== "writes" && from.engine !== "unknown");
  const isOut = hasEnded || isLapsed(right);
  const isComplete =
    needed === undefined || (needed.length > 0 && needed.every((id) => candidates.some(({ nodeId }) => nodeId === id)));
  const able = candidates.filter(
    ({ quietMs, isOther, isUncounted }) =>
      isOut && isComplete && isOther !== true && (hasEnded || (isUncounted !== true && quietMs >= lapsedAfterMs)),
  );
  // What it lacks is taken on; that the old primary may get its right from the others is not.
  const chosen = () =>
    candidates.find(
      ({ nodeId, quietMs, isOther, isUncounted }) =>
        nodeId === forced &&
        isOut &&
        (hasEnded || (isOther !== true && isUncounted !== true && quietMs >= lapsedAfterMs)),
    );
  const best = forced === undefined ? mostAdvanced(able, candidates) : chosen();
  if (best !== undefined) return { kind: "name", nodeId: best.nodeId };
  if (right.revokedForMs < fenceWithinMs) return { kind: "wait" };
  // It is up behind a network that it shares with its members, or has ended where nobody can take its place.
  const isThere = from.answers || candidates.some(({ streaming }) => streaming);
  return isThere ? { kind: "goBack" } : { kind: "wait" };
}

/**
 * One that is behind another, or on an older timeline than it, is not named while that one answers; and neither is one of two
 * of which nobody knows who is behind.
 */
function mostAdvanced(able: readonly Candidate[], all: readonly Candidate[]): Candidate | undefined {
  const isBehind = (one: Candidate, other: Candidate) =>
    one.timeline < other.timeline ||
    one.history !== other.history ||
    (one.timeline === other.timeline && one.position < other.position);
  return able.find((one) => !all.some((other) => isBehind(one, other)));
}
