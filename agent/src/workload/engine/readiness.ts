import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import type { DrivenInstance } from "../../engines/engine-driver.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { InstanceStatus } from "./instance-status.ts";
import { listenerCheck, listenerMessage, missingListeners } from "./listener-check.ts";
import type { TextLogReader } from "../log-reader.ts";
import { explain } from "./engine-messages.ts";
import { reportStart } from "./start-report.ts";

/** Waits until a started engine may be reported as running. */
export interface Readiness {
  /**
   * Waits until the signal: an engine that recovers is never interrupted. Meanwhile the state's reason is what the
   * engine prints about its progress since the mark, a cursor of its log.
   */
  untilReady(driven: DrivenInstance, mark: string, limit: AbortSignal): Promise<void>;
  /**
   * Observes the engine after it applied new settings, so that both are reported together. The probes report a failure
   * if it persists.
   */
  observe(driven: DrivenInstance, changed: AbortSignal): Promise<void>;
  /**
   * Reports a ready engine as running, or returns a message for users why it is not. Clients use every address of the
   * service, so an engine that misses one does not count as running.
   */
  becomeRunning(driven: DrivenInstance, changed: AbortSignal): Promise<string | undefined>;
}

export interface ReadinessDeps {
  readonly process: EngineProcess;
  readonly status: InstanceStatus;
  readonly logs: Pick<TextLogReader, "follow">;
  readonly log: Log;
}

const readyRetryMs = 500;
const maxRetryMs = 30_000;
const observeTimeoutMs = 3_000;
const observeRetryMs = 100;

export function createReadiness({ process, status, logs, log }: ReadinessDeps): Readiness {
  async function becomeReady(driven: DrivenInstance, limit: AbortSignal): Promise<void> {
    const { driver, instance } = driven;
    let companionRetryMs = readyRetryMs;
    for (;;) {
      try {
        limit.throwIfAborted();
        await process.whileCompanionsRun(driven, limit, (until) => driver.ready(instance, until));
        return;
      } catch (error) {
        limit.throwIfAborted();
        // A companion most often fails to start because its address is taken, so it is retried once the address is
        // free.
        const missing = process.companionsRun(driven) ? undefined : await missingListeners(driven, limit);
        const message =
          missing === undefined || missing.length === 0 ? (error as Error).message : listenerMessage(missing);
        status.setState("starting", explain(message).reason);
        const canBind = missing?.every(({ reason }) => reason === "free") === true;
        await sleep(canBind ? companionRetryMs : readyRetryMs, undefined, { signal: limit });
        if (!canBind) continue;
        companionRetryMs = Math.min(2 * companionRetryMs, maxRetryMs);
        await process.ensureCompanions(driver, instance);
      }
    }
  }

  return {
    async untilReady(driven, mark, limit) {
      const report = reportStart(driven.driver, { logs, mark, status });
      try {
        await becomeReady(driven, limit);
      } finally {
        await report.close();
      }
    },
    async observe({ driver, instance }, changed) {
      const limit = AbortSignal.any([changed, AbortSignal.timeout(observeTimeoutMs)]);
      try {
        for (;;) {
          const number = status.startObservation();
          const observation = await driver.observe(instance, limit);
          status.setObservation(observation, number);
          if (observation.version !== "") return;
          await sleep(observeRetryMs, undefined, { signal: limit });
        }
      } catch (error) {
        log.info("engine not observed", { service: instance.spec.serviceId, reason: (error as Error).message });
      }
    },
    async becomeRunning(driven, changed) {
      const missing = await missingListeners(driven, changed);
      status.setCheck(listenerCheck(missing));
      if (missing.length > 0) {
        const message = listenerMessage(missing);
        status.setState("starting", message);
        return message;
      }
      status.setState("running");
      status.setCheck({ name: "liveness", status: "healthy", reason: "" });
      return undefined;
    },
  };
}
