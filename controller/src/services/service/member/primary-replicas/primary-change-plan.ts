import type { PrimaryChange } from "../../managed-service.ts";

/** Time in which an orderly change must find a new primary; then the old one is named again. */
export const yieldTimeoutMs = 30_000;
/** Time in which a named primary whose agent answers must take its first write. */
export const promoteTimeoutMs = 60_000;

/** State of the old or new primary that is certain from its agent's last report. */
export interface MemberState {
  /** Its agent answers, and has reported since the machine's start. */
  readonly answers: boolean;
  /** The newest settings are on its disk: it never applies older ones again, however often it starts. */
  readonly hasNewestSettings: boolean;
  /**
   * `writes`: the engine took a write as the primary. The others are of a stopped engine: `ended` and `cutOff`: its
   * data were a primary's, and shut down in order or not; `follower`: its data were a replica's, so it never took a
   * write of its own.
   */
  readonly engine: "writes" | "ended" | "cutOff" | "follower" | "unknown";
}

/** The next step of a primary change. Each but `wait` is one transaction, and all but `settle` raise the term. */
export type PrimaryChangeVerdict =
  /** Nothing can be concluded or done now. */
  | "wait"
  /** There is no primary: `fence-verdict.ts` chooses the next one. */
  | "fence"
  /** The old primary has ended: the new one is named once it has replayed everything. */
  | "compare"
  /** The new primary is named again, because the old one does not answer. */
  | "retry"
  /** The new primary is named again and stays it, because its data have taken writes. */
  | "resume"
  /** No node is the primary until the agent of the new one reports its state. */
  | "recall"
  /** The old primary is named again. */
  | "revert"
  /** The change is complete. */
  | "settle";

/**
 * The next step of a primary change. The old primary is named again only if the new one was never named, or once
 * the agent of the new one has stored settings of a higher term under which it is no primary, and its stopped data show
 * that it never was one.
 */
export function planPrimaryChange(
  primaryChange: PrimaryChange,
  from: MemberState,
  to: MemberState,
  now: number,
): PrimaryChangeVerdict {
  const { step, since, stepSince = since } = primaryChange;
  const tookMs = now - stepSince;
  switch (step) {
    case "fence":
      return "fence";
    case "yield":
      if (from.hasNewestSettings && from.engine === "cutOff") return "revert";
      if (tookMs > yieldTimeoutMs) return "revert";
      return from.hasNewestSettings && from.engine === "ended" ? "compare" : "wait";
    case "promote":
      if (to.answers && to.hasNewestSettings && to.engine === "writes") return "settle";
      // Either the change was reverted, or the new primary has taken writes: there is no other node to name.
      if (primaryChange.from === primaryChange.to) return !to.answers || tookMs > promoteTimeoutMs ? "settle" : "wait";
      if (primaryChange.hasPromoted === true) return "wait";
      return to.answers && tookMs > promoteTimeoutMs ? "recall" : "wait";
    case "recall":
      if (!to.hasNewestSettings) return "wait";
      if (to.engine === "ended" || to.engine === "cutOff") return "resume";
      if (to.engine !== "follower") return "wait";
      return from.answers ? "revert" : "retry";
  }
}
