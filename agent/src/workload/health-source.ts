import type { EngineCheck } from "../engines/engine-driver.ts";
import type { SampleSource } from "./sample-source.ts";
import type { WorkloadStatus } from "./workload-status.ts";

const figures: Readonly<Record<EngineCheck["status"], number>> = { healthy: 0, degraded: 1, unhealthy: 2 };

/** Health as a figure: 0 healthy, 1 degraded, 2 unhealthy. It needs no response of the workload. */
export function createHealthSource(status: Pick<WorkloadStatus, "level">): SampleSource {
  return {
    async read() {
      return { values: { health: status.level && figures[status.level] }, absent: {} };
    },
  };
}
