import type { EngineCheck } from "../engines/engine-driver.ts";
import type { InstanceStatus } from "../instance/instance-status.ts";
import type { SampleSource } from "./sample-source.ts";

const figures: Readonly<Record<EngineCheck["status"], number>> = { healthy: 0, degraded: 1, unhealthy: 2 };

/** Health as a figure. Told without the engine, so that it says so when that one hangs. */
export function createHealthSource(status: Pick<InstanceStatus, "level">): SampleSource {
  return {
    async read() {
      return { values: { health: status.level && figures[status.level] }, absent: {} };
    },
  };
}
