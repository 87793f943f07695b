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
  /** Time for which streams are retained without a lease while another controller can act. */
  readonly graceMs: number;
  /** Interval at which the other controllers are queried while this one has no lease. */
  readonly checkIntervalMs: number;
  /** Resolves to true if another controller has a lease, or may have one. Never rejects. */
  readonly othersMayAct: () => Promise<boolean>;
  readonly monotonicMs: () => number;
  readonly log: Log;
  /** Called when the lease has ended. Streams are retained, because a new lease may follow soon. */
  readonly onLost: () => void;
  /** Called when a new lease exists, under which retained streams are to be reclaimed. */
  readonly onRegained: (lease: Lease) => void;
  /** Called when all streams are to be ended, for this reason. */
  readonly onEnd: (reason: string) => void;
}

/**
 * Watches the controller's lease. While no controller has one, such as in an outage of etcd, streams are retained
 * without a limit: agents without a stream would dial all controllers without success, and all of them would dial at
 * the same time after the outage. If only this controller has had none for `graceMs`, it ends its streams, so that its
 * agents connect to the others.
 */
export function createStreamLease(deps: StreamLeaseDeps): StreamLease {
  const { controllerRegistry, graceMs, checkIntervalMs, othersMayAct, monotonicMs, log, onLost, onRegained, onEnd } =
    deps;
  let current: Lease | undefined;
  /** Aborted when the retention of streams without a lease ends; undefined outside of a retention. */
  let retention: AbortController | undefined;

  function check(): void {
    const before = current;
    current = controllerRegistry.draining ? undefined : controllerRegistry.lease();
    if (before !== undefined && before !== current) lose();
    if (retention === undefined) return;
    if (controllerRegistry.draining) end("the controller drains");
    else if (current !== undefined) regain(current);
  }

  function lose(): void {
    retention?.abort();
    retention = new AbortController();
    inBackground(log, "agent streams without a lease", waitForLease(retention.signal));
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
    retention?.abort();
    retention = undefined;
    onRegained(lease);
  }

  function end(reason: string): void {
    retention?.abort();
    retention = undefined;
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
      retention?.abort();
      current = undefined;
    },
  };
}
