import type { DrivenInstance } from "../../engines/engine-driver.ts";
import { checkCollations } from "./collation-check.ts";
import type { DataVersion } from "./data-version.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { InstanceStatus } from "./instance-status.ts";
import type { Readiness } from "./readiness.ts";

/** The engine that is ready for tasks: it has accepted a write since its start or adoption, and has not ended. */
export interface ReadyEngine {
  /** The ready engine; undefined without one. */
  current(): DrivenInstance | undefined;
  /** Waits until the running engine is ready, and completes what must precede the state "running". */
  awaitReady(driven: DrivenInstance, options: AwaitReadyOptions, changed: AbortSignal): Promise<void>;
  /** Sets the running engine as ready, with these settings. */
  set(driven: DrivenInstance): void;
  /** Clears it, before the engine is stopped or started. */
  clear(): void;
}

export interface AwaitReadyOptions {
  readonly isNew: boolean;
  /** Cursor of the log before the engine's start. */
  readonly mark: string;
}

export interface ReadyEngineDeps {
  readonly process: Pick<EngineProcess, "lifetime">;
  readonly readiness: Pick<Readiness, "untilReady" | "observe">;
  readonly dataVersion: Pick<DataVersion, "finish">;
  readonly status: Pick<InstanceStatus, "setCollations">;
}

export function createReadyEngine({ process, readiness, dataVersion, status }: ReadyEngineDeps): ReadyEngine {
  let ready: { readonly lifetime: AbortSignal; readonly driven: DrivenInstance } | undefined;

  return {
    current: () => (ready === undefined || ready.lifetime.aborted ? undefined : ready.driven),
    async awaitReady(driven, { isNew, mark }, changed) {
      const lifetime = process.lifetime();
      await readiness.untilReady(driven, mark, AbortSignal.any([changed, lifetime]));
      ready = { lifetime, driven };
      try {
        await readiness.observe(driven, changed);
        await dataVersion.finish(driven, changed);
        // Checked before the state "running": an image canary over existing data waits for this result.
        const collation = isNew ? undefined : await checkCollations(driven.driver, driven.instance, changed);
        if (collation !== undefined) status.setCollations(collation);
      } catch (error) {
        // The next reconcile repeats all of this, since a ready engine would only be refreshed.
        ready = undefined;
        throw error;
      }
    },
    set(driven) {
      ready = { lifetime: process.lifetime(), driven };
    },
    clear() {
      ready = undefined;
    },
  };
}
