import type { NodeReport } from "./delivery-plan.ts";

/** A machine of an app, as its reconciler observes it. */
export interface ObservedNode {
  readonly id: string;
  /** Present: its machine exists and is not being deleted. Leaving: its host is drained, so another replaces it. */
  readonly presence: "present" | "leaving" | "absent";
  readonly hasSession: boolean;
  /** True if its compute provider reports that it does not run. */
  readonly isDown: boolean;
  /** True if the release that serves on it is healthy. */
  readonly isHealthy: boolean;
  /** True if it runs no release, as it was requested. */
  readonly isStopped: boolean;
  /** Reason of its state, such as how its program ended; absent: none. */
  readonly reason?: string;
  /** Undefined if it has not reported yet. */
  readonly report: NodeReport | undefined;
}
