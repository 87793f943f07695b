import type { Membership } from "../runtime/membership.ts";
import type { Lease } from "../store/store.ts";

/** Whether this controller may hold agents' streams: while it has a live lease and does not drain. */
export interface Standing {
  /** The lease that streams hang on; undefined while none may be held. */
  readonly lease: Lease | undefined;
  close(): void;
}

/** `onEnd` is called with the reason when streams may be held no more; until then the right may have come and gone. */
export function createStanding(
  membership: Pick<Membership, "lease" | "draining" | "subscribe">,
  onEnd: (reason: string) => void,
): Standing {
  let held: Lease | undefined;

  function look(): void {
    const before = held;
    held = membership.draining ? undefined : membership.lease();
    if (before === undefined || before === held) return;
    onEnd(membership.draining ? "the controller drains" : "the controller lost its lease");
  }
  const watch = membership.subscribe(look);
  look();
  return {
    get lease() {
      return held?.live === true ? held : undefined;
    },
    close() {
      watch.close();
      held = undefined;
    },
  };
}
