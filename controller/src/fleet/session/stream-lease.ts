import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Membership } from "#kernel/runtime/membership.ts";
import type { Lease } from "#kernel/store/store.ts";

/** Whether this controller may act on agents' streams: while it has a live lease and does not drain. */
export interface StreamLease {
  /** The lease that streams hang on; undefined while nothing may be done with them. */
  readonly lease: Lease | undefined;
  close(): void;
}

export interface StreamLeaseDeps {
  readonly membership: Pick<Membership, "lease" | "draining" | "subscribe">;
  /** How long streams are kept without a lease while another controller could do more for their machines. */
  readonly graceMs: number;
  /** How often the others are asked meanwhile. */
  readonly lookMs: number;
  /** Has another controller a lease, or may it have one for all that can be known? Never throws. */
  readonly othersMayAct: () => Promise<boolean>;
  readonly monotonicMs: () => number;
  readonly log: Log;
  /** The lease is over. The streams stay: there may be another one in a moment, and a whole fleet need not dial anew for it. */
  readonly onLost: () => void;
  /** There is another lease, under which the streams that were kept are to be taken again. */
  readonly onRegained: (lease: Lease) => void;
  /** Streams may be held no more, for this reason. */
  readonly onEnd: (reason: string) => void;
}

/**
 * While no controller can have a lease, agents that were let go would dial all of them in vain, again and again, and all at
 * once when there is one: so an outage of etcd ends no stream, however long it is. A controller that alone has none lets its
 * agents go to the others, once it has not come by another lease for a while.
 */
export function createStreamLease(deps: StreamLeaseDeps): StreamLease {
  const { membership, graceMs, lookMs, othersMayAct, monotonicMs, log, onLost, onRegained, onEnd } = deps;
  let held: Lease | undefined;
  /** There while streams are kept without a lease. */
  let keeping: AbortController | undefined;

  function look(): void {
    const before = held;
    held = membership.draining ? undefined : membership.lease();
    if (before !== undefined && before !== held) lose();
    if (keeping === undefined) return;
    if (membership.draining) end("the controller drains");
    else if (held !== undefined) regain(held);
  }

  function lose(): void {
    keeping?.abort();
    keeping = new AbortController();
    inBackground(log, "streams without a lease", keep(keeping.signal));
    if (!membership.draining) onLost();
  }

  async function keep(over: AbortSignal): Promise<void> {
    let aloneSinceMs = monotonicMs();
    while (!over.aborted) {
      const askedAtMs = monotonicMs();
      if (!(await othersMayAct())) aloneSinceMs = askedAtMs;
      if (over.aborted) return;
      const leftMs = aloneSinceMs + graceMs - monotonicMs();
      if (leftMs <= 0) return end("the controller lost its lease");
      await delay(Math.min(lookMs, leftMs), undefined, { ref: false });
    }
  }

  function regain(lease: Lease): void {
    keeping?.abort();
    keeping = undefined;
    onRegained(lease);
  }

  function end(reason: string): void {
    keeping?.abort();
    keeping = undefined;
    onEnd(reason);
  }

  const watch = membership.subscribe(look);
  look();
  return {
    get lease() {
      return held?.live === true ? held : undefined;
    },
    close() {
      watch.close();
      keeping?.abort();
      held = undefined;
    },
  };
}
