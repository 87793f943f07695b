import type { EngineCheck } from "../engines/engine-driver.ts";
import type { WorkloadStatus } from "./workload-status.ts";

/** A source of metrics. A source that hangs delays no other. */
export interface SampleSource {
  /** Current values by metric name. A metric in neither `values` nor `absent` has no value this time. */
  read(signal: AbortSignal): Promise<Reading>;
}

export interface Reading {
  readonly values: Readonly<Record<string, number | undefined>>;
  /** Metrics that this source cannot measure on this machine, each with the reason. */
  readonly absent: Readonly<Record<string, string>>;
}

/** Values of all metrics at one time, as they are stored and sent. */
export interface Sample {
  /** Milliseconds since 1970: a multiple of the interval. */
  readonly timeMs: number;
  /** Numbers of the metrics in the metric catalog. */
  readonly metricNumbers: readonly number[];
  /** Values, one for each metric number. */
  readonly values: readonly number[];
}

const figures: Readonly<Record<EngineCheck["status"], number>> = { healthy: 0, degraded: 1, unhealthy: 2 };

/** Health as a figure: 0 healthy, 1 degraded, 2 unhealthy. It needs no response of the workload. */
export function createHealthSource(status: Pick<WorkloadStatus, "level">): SampleSource {
  return {
    async read() {
      return { values: { health: status.level && figures[status.level] }, absent: {} };
    },
  };
}
