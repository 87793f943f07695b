import type { Succession } from "../managed-service.ts";

/** So long an orderly change of the primary may find nobody who takes writes; then the old one is the primary again. */
export const yieldWithinMs = 30_000;
/** So long a primary that was named, and whose agent answers, may take until its first write. */
export const promoteWithinMs = 60_000;

/** What is known for sure of one of both members, by what its agent told last. */
export interface MemberWord {
  /** Its agent answers, and told the rest since its machine's start. */
  readonly answers: boolean;
  /** The newest settings are on its disk: it never follows older ones again, however often it starts. */
  readonly isHeld: boolean;
  /**
   * `writes`: its engine took a write as the primary. The others are told of an engine that is stopped: its data were a
   * primary's and stopped in order, or not; or they follow, so that it never took a write of its own.
   */
  readonly engine: "writes" | "ended" | "cutOff" | "follower" | "unknown";
}

/** What is done next about a succession. Each but `wait` is one transaction, and all but `settle` raise the term. */
export type SuccessionVerdict =
  /** Nothing can be known or done now. */
  | "wait"
  /** There is no primary: the next one is chosen by `fence-verdict.ts`. */
  | "fence"
  /** The old primary has ended: the new one is named as soon as it says that it has everything. */
  | "compare"
  /** The new primary is named again: the old one does not answer. */
  | "retry"
  /** The new primary is named again, and stays it: its data have been a primary's. */
  | "goOn"
  /** Nobody is the primary until the new one's agent says what became of it. */
  | "recall"
  /** The old primary is named again. */
  | "goBack"
  /** It is over. */
  | "settle";

/**
 * Pure: what a succession needs next. The old primary is named again only while the new one was never named, or once its agent
 * keeps the settings of a higher term by which it is none, and its stopped data show that it never was one.
 */
export function succeed(succession: Succession, from: MemberWord, to: MemberWord, now: number): SuccessionVerdict {
  const { step, since, stepSince = since } = succession;
  const tookMs = now - stepSince;
  switch (step) {
    case "fence":
      return "fence";
    case "yield":
      if (from.isHeld && from.engine === "cutOff") return "goBack";
      if (tookMs > yieldWithinMs) return "goBack";
      return from.isHeld && from.engine === "ended" ? "compare" : "wait";
    case "promote":
      if (to.answers && to.isHeld && to.engine === "writes") return "settle";
      // Back to the old primary, or on with one that has taken writes: there is nobody else to turn to.
      if (succession.from === succession.to) return !to.answers || tookMs > promoteWithinMs ? "settle" : "wait";
      if (succession.hasPromoted === true) return "wait";
      return to.answers && tookMs > promoteWithinMs ? "recall" : "wait";
    case "recall":
      if (!to.isHeld) return "wait";
      if (to.engine === "ended" || to.engine === "cutOff") return "goOn";
      if (to.engine !== "follower") return "wait";
      return from.answers ? "goBack" : "retry";
  }
}
