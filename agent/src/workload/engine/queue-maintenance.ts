import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { DrivenInstance } from "../../engines/engine-driver.ts";
import { roleOf } from "../../engines/members.ts";

export interface QueueMaintenanceDeps {
  /** The running engine that accepts connections; undefined without one. */
  readonly target: () => DrivenInstance | undefined;
  readonly log: Log;
}

const intervalMs = 60_000;
/** Delay after the start of the agent, to leave a starting engine undisturbed. */
const firstAfterMs = 5_000;
const timeoutMs = 300_000;

/** Runs maintenance of the engine's queues once a minute, with or without a controller. */
export function createQueueMaintenance({ target, log }: QueueMaintenanceDeps): {
  run(signal: AbortSignal): Promise<void>;
} {
  return {
    async run(signal) {
      let waitMs = firstAfterMs;
      while (!signal.aborted) {
        await sleep(waitMs, undefined, { signal }).catch(() => undefined);
        const engine = target();
        if (signal.aborted || engine?.driver.queues === undefined) continue;
        waitMs = intervalMs;
        // The primary's changes reach replicas by replication.
        if (roleOf(engine.instance.spec) !== "primary") continue;
        const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
        await engine.driver.queues.maintain(engine.instance, limit).catch((error: unknown) => {
          if (!signal.aborted && target() !== undefined) log.warn("queue maintenance failed", { error: String(error) });
        });
      }
    },
  };
}
