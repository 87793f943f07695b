import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ArchiveObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { DrivenInstance } from "../../engines/engine-driver.ts";
import type { SampleSource } from "../sample-source.ts";

/** Lag of the engine's log archive; no values without an archive. */
export function createArchiveSource(archive: () => ArchiveObservation | undefined, now: () => number): SampleSource {
  return {
    async read() {
      const observation = archive();
      if (observation?.durableTime === undefined) return { values: {}, absent: {} };
      const ageMs = now() - timestampMs(observation.durableTime);
      const values = {
        // The clock may have been set back.
        restorable_age_seconds: Math.max(0, ageMs) / 1_000,
        archive_waiting_bytes: Number(observation.waitingBytes),
      };
      return { values, absent: {} };
    },
  };
}

const withinMs = 3_000;

/** Totals of the engine's queues; no values for an engine without queues. */
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
