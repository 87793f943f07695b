import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import { roleOf } from "../engines/members.ts";

export interface QueueKeeperDeps {
  /** What runs and takes connections; undefined when nothing does. */
  readonly target: () => DrivenInstance | undefined;
  readonly log: Log;
}

const everyMs = 60_000;
/** An engine that has just started has other things to do. */
const firstAfterMs = 5_000;
const timeoutMs = 300_000;

/** Keeps the queues of the engine in order each minute, with or without a controller. */
export function createQueueKeeper({ target, log }: QueueKeeperDeps): { run(signal: AbortSignal): Promise<void> } {
  return {
    async run(signal) {
      let waitMs = firstAfterMs;
      while (!signal.aborted) {
        await sleep(waitMs, undefined, { signal }).catch(() => undefined);
        const engine = target();
        if (signal.aborted || engine?.driver.queues === undefined) continue;
        waitMs = everyMs;
        // A replica has from its primary what is kept there.
        if (roleOf(engine.instance.spec) !== "primary") continue;
        const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
        await engine.driver.queues.keep(engine.instance, limit).catch((error: unknown) => {
          if (!signal.aborted && target() !== undefined) log.warn("queues not kept", { error: String(error) });
        });
      }
    },
  };
}
