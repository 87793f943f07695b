import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ArchiveObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { SampleSource } from "./sample-source.ts";

/** How far the archive of the engine's log is behind; nothing while none is kept. */
export function createArchiveSource(archive: () => ArchiveObservation | undefined, now: () => number): SampleSource {
  return {
    async read() {
      const told = archive();
      if (told?.durableTime === undefined) return { values: {}, absent: {} };
      const ageMs = now() - timestampMs(told.durableTime);
      const values = {
        // Clocks are set back.
        restorable_age_seconds: Math.max(0, ageMs) / 1_000,
        archive_waiting_bytes: Number(told.waitingBytes),
      };
      return { values, absent: {} };
    },
  };
}
