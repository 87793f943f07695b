import type { Membership } from "../../runtime/membership.ts";
import type { Lease } from "../../store/store.ts";

/** Whether this controller may act on agents' streams: while it has a live lease and does not drain. */
export interface Standing {
  /** The lease that streams hang on; undefined while nothing may be done with them. */
  readonly lease: Lease | undefined;
  close(): void;
}

export interface StandingDeps {
  readonly membership: Pick<Membership, "lease" | "draining" | "subscribe">;
  /** How long streams are kept without a lease. */
  readonly graceMs: number;
  /** The lease is over. The streams stay: there may be another one in a moment, and a whole fleet need not dial anew for it. */
  readonly onLost: () => void;
  /** There is another lease, under which the streams that were kept are to be taken again. */
  readonly onRegained: (lease: Lease) => void;
  /** Streams may be held no more, for this reason. */
  readonly onEnd: (reason: string) => void;
}

export function createStanding({ membership, graceMs, onLost, onRegained, onEnd }: StandingDeps): Standing {
  let held: Lease | undefined;
  let isKept = false;
  let ending: NodeJS.Timeout | undefined;

  function look(): void {
    const before = held;
    held = membership.draining ? undefined : membership.lease();
    if (before !== undefined && before !== held) lose();
    if (!isKept) return;
    if (membership.draining) end("the controller drains");
    else if (held !== undefined) regain(held);
  }

  function lose(): void {
    isKept = true;
    ending = setTimeout(() => end("the controller lost its lease"), graceMs).unref();
    if (!membership.draining) onLost();
  }

  function regain(lease: Lease): void {
    isKept = false;
    clearTimeout(ending);
    onRegained(lease);
  }

  function end(reason: string): void {
    isKept = false;
    clearTimeout(ending);
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
      clearTimeout(ending);
      held = undefined;
    },
  };
}
