import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { Lease } from "#kernel/store/store.ts";

/** The lease under which this controller may act on agents' streams: while it has a live lease and does not drain. */
export interface StreamLease {
  /** The lease for the streams' presence keys; undefined while this controller must not act on streams. */
  readonly lease: Lease | undefined;
  close(): void;
}

export interface StreamLeaseDeps {
  readonly controllerRegistry: Pick<ControllerRegistry, "lease" | "draining" | "subscribe">;
  /** Time that streams are retained without a lease while another controller can act. */
  readonly graceMs: number;
  /** Interval at which the others are asked meanwhile. */
  readonly checkIntervalMs: number;
  /** Resolves to true if another controller has a lease, or may have one. Never rejects. */
  readonly othersMayAct: () => Promise<boolean>;
  readonly monotonicMs: () => number;
  readonly log: Log;
  /** The lease is over. Streams stay, because a new lease may follow soon. */
  readonly onLost: () => void;
  /** A new lease exists; retained streams are to be reclaimed under it. */
  readonly onRegained: (lease: Lease) => void;
  /** All streams are to be ended, for this reason. */
  readonly onEnd: (reason: string) => void;
}

/**
 * Watches the controller's lease. While no controller has one, as in an outage of etcd, streams are retained without a
 * limit: released agents would only dial in vain, and all at once after the outage. If only this controller has none
 * for `graceMs`, it ends its streams, so that its agents go to the others.
 */
export function createStreamLease(deps: StreamLeaseDeps): StreamLease {
  const { controllerRegistry, graceMs, checkIntervalMs, othersMayAct, monotonicMs, log, onLost, onRegained, onEnd } =
    deps;
  let current: Lease | undefined;
  /** Defined while streams are retained without a lease. */
  let waiting: AbortController | undefined;

  function check(): void {
    const before = current;
    current = controllerRegistry.draining ? undefined : controllerRegistry.lease();
    if (before !== undefined && before !== current) lose();
    if (waiting === undefined) return;
    if (controllerRegistry.draining) end("the controller drains");
    else if (current !== undefined) regain(current);
  }

  function lose(): void {
    waiting?.abort();
    waiting = new AbortController();
    inBackground(log, "agent streams without a lease", waitForLease(waiting.signal));
    if (!controllerRegistry.draining) onLost();
  }

  async function waitForLease(superseded: AbortSignal): Promise<void> {
    let aloneSinceMs = monotonicMs();
    while (!superseded.aborted) {
      const checkedAtMs = monotonicMs();
      if (!(await othersMayAct())) aloneSinceMs = checkedAtMs;
      if (superseded.aborted) return;
      const remainingMs = aloneSinceMs + graceMs - monotonicMs();
      if (remainingMs <= 0) return end("the controller lost its lease");
      await delay(Math.min(checkIntervalMs, remainingMs), undefined, { ref: false });
    }
  }

  function regain(lease: Lease): void {
    waiting?.abort();
    waiting = undefined;
    onRegained(lease);
  }

  function end(reason: string): void {
    waiting?.abort();
    waiting = undefined;
    onEnd(reason);
  }

  const watch = controllerRegistry.subscribe(check);
  check();
  return {
    get lease() {
      return current?.live === true ? current : undefined;
    },
    close() {
      watch.close();
      waiting?.abort();
      current = undefined;
    },
  };
}
