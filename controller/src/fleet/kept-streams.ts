import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { Lease } from "#kernel/store/store.ts";
import type { Presence } from "./session/presence.ts";
import type { Session } from "./session/session.ts";
import type { Sessions } from "./session/sessions.ts";
import type { TaskDispatch } from "./task/task-dispatch.ts";

export interface KeptStreamsDeps {
  readonly sessions: Pick<Sessions, "values" | "release">;
  readonly presence: Pick<Presence, "renew" | "leave">;
  readonly dispatch: Pick<TaskDispatch, "resume">;
  /** The lease of now; undefined without one. */
  readonly lease: () => Lease | undefined;
  readonly log: Log;
}

/** Streams whose presence is written anew together; the store makes two transactions of these. */
const atOnce = 128;
const retryMs = 500;

/** Takes streams that outlived a lease again, under the next one. Resolves when all are, or that lease is over as well. */
export function createKeptStreams({ sessions, presence, dispatch, lease, log }: KeptStreamsDeps) {
  async function take(session: Session, under: Lease): Promise<void> {
    while (!session.closed && lease() === under) {
      try {
        const isHere = await presence.renew(session, under);
        if (!isHere) sessions.release(session, "a newer stream is elsewhere");
        else if (session.closed) presence.leave(session);
        else dispatch.resume(session);
        return;
      } catch (error) {
        log.debug("stream not taken again yet", { machine: session.machineId, error: String(error) });
        await delay(retryMs, undefined, { ref: false });
      }
    }
  }

  return {
    /** A few at a time: what waits for too long is refused by the store. */
    async takeAll(under: Lease): Promise<void> {
      const kept = [...sessions.values()];
      while (kept.length > 0 && lease() === under) {
        await Promise.all(kept.splice(0, atOnce).map((session) => take(session, under)));
      }
    },
  };
}
