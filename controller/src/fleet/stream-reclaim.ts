import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { Lease } from "#kernel/store/store.ts";
import type { Presence } from "./session/presence.ts";
import type { AgentSession } from "./session/session.ts";
import type { Sessions } from "./session/sessions.ts";
import type { TaskDispatch } from "./task/task-dispatch.ts";

export interface StreamReclaimDeps {
  readonly sessions: Pick<Sessions, "values" | "release">;
  readonly presence: Pick<Presence, "renew" | "leave">;
  readonly dispatch: Pick<TaskDispatch, "resume">;
  /** The controller's lease; undefined without one. */
  readonly lease: () => Lease | undefined;
  readonly log: Log;
}

/** Number of presence keys that are written concurrently; the store batches them into two calls of etcd. */
const batchSize = 128;
const retryDelayMs = 500;

/**
 * Reclaims streams that outlived a lease: writes their presence keys under the next lease and resumes their tasks.
 * Streams of machines that have a newer stream elsewhere are ended.
 */
export function createStreamReclaim({ sessions, presence, dispatch, lease, log }: StreamReclaimDeps) {
  async function reclaim(session: AgentSession, under: Lease): Promise<void> {
    while (!session.closed && lease() === under) {
      try {
        const isHere = await presence.renew(session, under);
        if (!isHere) sessions.release(session, "the machine has a newer stream at another controller");
        else if (session.closed) presence.leave(session);
        else dispatch.resume(session);
        return;
      } catch (error) {
        log.debug("stream not reclaimed yet", { machine: session.machineId, error: String(error) });
        await delay(retryDelayMs, undefined, { ref: false });
      }
    }
  }

  return {
    /**
     * Resolves when every stream is reclaimed, or this lease has ended. Streams are reclaimed in batches, because the
     * store refuses requests that wait for over two seconds.
     */
    async reclaimAll(under: Lease): Promise<void> {
      const remaining = [...sessions.values()];
      while (remaining.length > 0 && lease() === under) {
        await Promise.all(remaining.splice(0, batchSize).map((session) => reclaim(session, under)));
      }
    },
  };
}
