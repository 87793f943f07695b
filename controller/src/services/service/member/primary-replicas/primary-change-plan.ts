import type { PrimaryChange } from "../../managed-service.ts";

/** Maximum time until the old primary has yielded in a switchover; then it is named again. */
export const yieldTimeoutMs = 30_000;
/**
 * Maximum time in which the new primary replays the last log of the old one, which has ended; then the old primary is
 * named again. Until then no node takes writes.
 */
export const replayTimeoutMs = 6_000;
/** Maximum time until a named primary with a connected agent takes its first write. */
export const promoteTimeoutMs = 60_000;

/** State of the old or new primary, as far as its agent's last report proves it. */
export interface MemberState {
  /** True if the agent is connected and has reported since the machine's start. */
  readonly isConnected: boolean;
  /** True if the newest settings are on the member's disk, so that it never applies older ones again. */
  readonly hasNewestSettings: boolean;
  /**
   * `writes`: the engine took a write as the primary. `ended`, `cutOff`: it stopped with a primary's data, in order or
   * not. `follower`: it stopped with a replica's data, so it never took writes from clients.
   */
  readonly engine: "writes" | "ended" | "cutOff" | "follower" | "unknown";
}

/** The next step of a primary change. All except `wait` are one transaction, and all except `settle` raise the term. */
export type PrimaryChangeVerdict =
  /** Nothing can be concluded or done now. */
  | "wait"
  /** There is no primary: `failover/fence-verdict.ts` chooses the next primary. */
  | "fence"
  /** The old primary has ended. The new primary is named once it has replayed the whole log. */
  | "compare"
  /** The new primary is named again, because the old primary is not connected. */
  | "retry"
  /** The new primary is named again for good, because it has taken writes. */
  | "resume"
  /** No node is the primary until the agent of the new one reports its state. */
  | "recall"
  /** The old primary is named again. */
  | "revert"
  /** The change is complete. */
  | "settle";

/**
 * The next step of a primary change. The old primary is named again only if the new one was never named, or once
 * the agent of the new one has stored settings of a higher term under which it is not the primary, and its stopped data
 * show that it never was the primary.
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
      if (to.isConnected && to.hasNewestSettings && to.engine === "writes") return "settle";
      // Either the change was reverted, or the new primary has taken writes: there is no other node to name.
      if (primaryChange.from === primaryChange.to)
        return !to.isConnected || tookMs > promoteTimeoutMs ? "settle" : "wait";
      if (primaryChange.hasPromoted === true) return "wait";
      return to.isConnected && tookMs > promoteTimeoutMs ? "recall" : "wait";
    case "recall":
      if (!to.hasNewestSettings) return "wait";
      if (to.engine === "ended" || to.engine === "cutOff") return "resume";
      if (to.engine !== "follower") return "wait";
      return from.isConnected ? "revert" : "retry";
  }
}
