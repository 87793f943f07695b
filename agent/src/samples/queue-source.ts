import type { DrivenInstance } from "../engines/engine-driver.ts";
import type { SampleSource } from "./sample-source.ts";

const withinMs = 3_000;

/** What the queues inside the engine come to; nothing for an engine without any. */
export function createQueueSource(engine: () => DrivenInstance | undefined): SampleSource {
  return {
    async read(signal) {
      const target = engine();
      if (target?.driver.queues === undefined) return { values: {}, absent: {} };
      const limit = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
      return { values: await target.driver.queues.sample(target.instance, limit), absent: {} };
    },
  };
}
