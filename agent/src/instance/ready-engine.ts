import type { DrivenInstance } from "../engines/engine-driver.ts";
import { checkCollations } from "./collation-check.ts";
import type { DataVersion } from "./data-version.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { InstanceStatus } from "./instance-status.ts";
import type { Readiness } from "./readiness.ts";

/** The engine that may be asked to work: it took a write since its start or its adoption, and has not ended since. */
export interface ReadyEngine {
  /** Undefined while there is none. */
  now(): DrivenInstance | undefined;
  /** Waits until the engine that runs is ready, and finishes what it needs before it is called running. */
  become(driven: DrivenInstance, options: { readonly isNew: boolean }, changed: AbortSignal): Promise<void>;
  /** The engine that runs now is ready, with these settings. */
  hold(driven: DrivenInstance): void;
  /** The engine is about to stop, or to be started. */
  drop(): void;
}

export interface ReadyEngineDeps {
  readonly process: Pick<EngineProcess, "lifetime">;
  readonly readiness: Pick<Readiness, "untilReady" | "observe">;
  readonly dataVersion: Pick<DataVersion, "finish">;
  readonly status: Pick<InstanceStatus, "ordersTexts">;
}

export function createReadyEngine({ process, readiness, dataVersion, status }: ReadyEngineDeps): ReadyEngine {
  let ready: { readonly lifetime: AbortSignal; readonly driven: DrivenInstance } | undefined;

  return {
    now: () => (ready === undefined || ready.lifetime.aborted ? undefined : ready.driven),
    async become(driven, { isNew }, changed) {
      const lifetime = process.lifetime();
      await readiness.untilReady(driven, AbortSignal.any([changed, lifetime]));
      ready = { lifetime, driven };
      try {
        await readiness.observe(driven, changed);
        await dataVersion.finish(driven, changed);
        // Before it is called running: a trial of another image over the data waits for this verdict.
        const collation = isNew ? undefined : await checkCollations(driven.driver, driven.instance, changed);
        if (collation !== undefined) status.ordersTexts(collation);
      } catch (error) {
        // The next round does all of this again: an engine that is left ready is refreshed, and called running.
        ready = undefined;
        throw error;
      }
    },
    hold(driven) {
      ready = { lifetime: process.lifetime(), driven };
    },
    drop() {
      ready = undefined;
    },
  };
}
