import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import type { StoredSamples } from "#fleet/session/sample-sink.ts";
import type { MetricItem } from "./export-item.ts";
import type { MachineTarget } from "./export-targets.ts";

/** The next samples of several machines. */
export interface SampleBatch {
  readonly items: readonly MetricItem[];
  /** The machines' positions after these samples, in milliseconds since 1970. */
  readonly positions: ReadonlyMap<string, number>;
  /** The machines that were read and have no further samples. */
  readonly done: ReadonlySet<string>;
  /** Number of values that were deleted from the history before they were exported. */
  readonly expired: number;
}

export interface SampleSource {
  /** At most `rows` samples, those of the machines with the oldest positions, oldest first for each machine. */
  next(machines: readonly MachinePosition[], rows: number, nowMs: number): Promise<SampleBatch>;
}

export interface MachinePosition {
  readonly target: MachineTarget;
  readonly afterMs: number;
}

const collected = metricCatalog.filter(({ source }) => source !== null);
const nameOfNumber = new Map(collected.map(({ number, name }) => [number, name]));
const metricNumbers = [...nameOfNumber.keys()];
/** Minimum retention of raw samples. */
const samplesRetainedMs = 24 * 3_600_000;
const hourMs = 3_600_000;
/** Longest gap between two samples when none is missing. */
const gapMaxMs = 60_000;

export function createSampleSource(samples: StoredSamples): SampleSource {
  async function expiredOf({ target, afterMs }: MachinePosition, firstMs: number | undefined, nowMs: number) {
    if (firstMs === undefined && afterMs >= nowMs - samplesRetainedMs - hourMs) return 0;
    const edgeMs = firstMs ?? nowMs - samplesRetainedMs;
    if (afterMs >= nowMs - samplesRetainedMs || edgeMs - afterMs <= gapMaxMs) return 0;
    return samples.countValues(target.machineId, afterMs, edgeMs);
  }

  return {
    async next(machines, rows, nowMs) {
      const first = machines.toSorted((a, b) => a.afterMs - b.afterMs).slice(0, Math.max(1, rows));
      const max = Math.max(1, Math.floor(rows / Math.max(1, first.length)));
      const queries = first.map(({ target, afterMs }) => ({ machineId: target.machineId, afterMs }));
      const found = Map.groupBy(await samples.recent(queries, metricNumbers, max), ({ machineId }) => machineId);
      const items: MetricItem[] = [];
      const positions = new Map<string, number>();
      const done = new Set<string>();
      let expired = 0;
      for (const machine of first) {
        const { machineId, origin } = machine.target;
        const own = found.get(machineId) ?? [];
        expired += await expiredOf(machine, own[0]?.timeMs, nowMs);
        // The position of a silent machine advances too, so that expired values are counted once.
        if (own.length === 0 && machine.afterMs < nowMs - samplesRetainedMs - hourMs)
          positions.set(machineId, nowMs - samplesRetainedMs);
        if (own.length < max) done.add(machineId);
        for (const { timeMs, values } of own) {
          positions.set(machineId, timeMs);
          for (const [metricNumber, value] of values) {
            const metric = nameOfNumber.get(metricNumber);
            if (metric !== undefined) items.push({ origin, metric, value, timeMs });
          }
        }
      }
      return { items, positions, done, expired };
    },
  };
}
