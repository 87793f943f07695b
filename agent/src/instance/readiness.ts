import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { InstanceStatus } from "./instance-status.ts";
import { listenerCheck, listenerWords, missingListeners } from "./listener-check.ts";
import { verdictOf } from "./verdict.ts";

/** An engine's way from its start to what may be called running. */
export interface Readiness {
  /** Waits as long as the signal lets it: an engine that recovers is never hurried. */
  untilReady(driven: DrivenInstance, limit: AbortSignal): Promise<void>;
  /**
   * What is told with new settings is what the engine says after it took them. A look that fails is the probe's to
   * tell, after a few more that may only have come in a bad moment.
   */
  observe(driven: DrivenInstance, changed: AbortSignal): Promise<void>;
  /**
   * Calls an engine running that is ready; answers why not, in words for users. Clients come by each address that the
   * service's names lead to: with one missing it does not run, whoever gets in by the others.
   */
  becomeRunning(driven: DrivenInstance, changed: AbortSignal): Promise<string | undefined>;
}

export interface ReadinessDeps {
  readonly process: EngineProcess;
  readonly status: InstanceStatus;
  readonly log: Log;
}

const readyRetryMs = 500;
const longestRetryMs = 30_000;
const observeTimeoutMs = 3_000;
const observeRetryMs = 100;

export function createReadiness({ process, status, log }: ReadinessDeps): Readiness {
  return {
    async untilReady(driven, limit) {
      const { driver, instance } = driven;
      let companionRetryMs = readyRetryMs;
      for (;;) {
        try {
          limit.throwIfAborted();
          await process.accompanied(driven, limit, (until) => driver.ready(instance, until));
          return;
        } catch (error) {
          limit.throwIfAborted();
          // What keeps a companion from starting is most often who has its address: it is of no use before that is
          // free.
          const missing = process.isAccompanied(driven) ? undefined : await missingListeners(driven, limit);
          const words =
            missing === undefined || missing.length === 0 ? (error as Error).message : listenerWords(missing);
          status.become("starting", verdictOf(words).reason);
          const isUseful = missing?.every(({ why }) => why === "free") === true;
          await sleep(isUseful ? companionRetryMs : readyRetryMs, undefined, { signal: limit });
          if (!isUseful) continue;
          companionRetryMs = Math.min(2 * companionRetryMs, longestRetryMs);
          await process.accompany(driver, instance);
        }
      }
    },
    async observe({ driver, instance }, changed) {
      const limit = AbortSignal.any([changed, AbortSignal.timeout(observeTimeoutMs)]);
      try {
        for (;;) {
          const look = status.looks();
          const observation = await driver.observe(instance, limit);
          status.observed(observation, look);
          if (observation.version !== "") return;
          await sleep(observeRetryMs, undefined, { signal: limit });
        }
      } catch (error) {
        log.info("engine not observed", { service: instance.spec.serviceId, reason: (error as Error).message });
      }
    },
    async becomeRunning(driven, changed) {
      const missing = await missingListeners(driven, changed);
      status.checked(listenerCheck(missing));
      if (missing.length > 0) {
        const words = listenerWords(missing);
        status.become("starting", words);
        return words;
      }
      status.become("running");
      status.checked({ name: "liveness", status: "healthy", reason: "" });
      return undefined;
    },
  };
}
