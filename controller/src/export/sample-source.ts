import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import type { MetricItem } from "./export-item.ts";
import type { MachineTarget } from "./export-targets.ts";

/** Raw samples, as the history has them. */
export interface StoredSamples {
  recent(
    asked: readonly { readonly machineId: string; readonly afterMs: number }[],
    slots: readonly number[],
    most?: number,
  ): Promise<
    readonly { readonly machineId: string; readonly timeMs: number; readonly values: ReadonlyMap<number, number> }[]
  >;
  /** How many values a machine told behind one time and before another, from roll-ups by the minute. */
  countValues(machineId: string, afterMs: number, beforeMs: number): Promise<number>;
}

/** The next samples of some machines. */
export interface SampleBatch {
  readonly items: readonly MetricItem[];
  /** Where each machine is behind them, in milliseconds since 1970. */
  readonly positions: ReadonlyMap<string, number>;
  /** The machines that were looked at and have nothing more. */
  readonly done: ReadonlySet<string>;
  /** Values that left the history before they came to be in a batch. */
  readonly gone: number;
}

export interface SampleSource {
  /** Oldest first for each machine, those first that are behind most; `rows` samples of machines at most. */
  next(machines: readonly PlacedMachine[], rows: number, nowMs: number): Promise<SampleBatch>;
}

export interface PlacedMachine {
  readonly target: MachineTarget;
  readonly afterMs: number;
}

const collected = metricCatalog.filter(({ source }) => source !== null);
const nameOfSlot = new Map(collected.map(({ slot, name }) => [slot, name]));
const slots = [...nameOfSlot.keys()];
/** Raw samples are kept so long at least. */
const samplesKeptMs = 24 * 3_600_000;
const hourMs = 3_600_000;
/** Between two samples of a machine that misses none. */
const usualGapMs = 60_000;

export function createSampleSource(samples: StoredSamples): SampleSource {
  async function goneOf({ target, afterMs }: PlacedMachine, firstMs: number | undefined, nowMs: number) {
    if (firstMs === undefined && afterMs >= nowMs - samplesKeptMs - hourMs) return 0;
    const edgeMs = firstMs ?? nowMs - samplesKeptMs;
    if (afterMs >= nowMs - samplesKeptMs || edgeMs - afterMs <= usualGapMs) return 0;
    return samples.countValues(target.machineId, afterMs, edgeMs);
  }

  return {
    async next(machines, rows, nowMs) {
      const first = machines.toSorted((a, b) => a.afterMs - b.afterMs).slice(0, Math.max(1, rows));
      const most = Math.max(1, Math.floor(rows / Math.max(1, first.length)));
      const asked = first.map(({ target, afterMs }) => ({ machineId: target.machineId, afterMs }));
      const found = Map.groupBy(await samples.recent(asked, slots, most), ({ machineId }) => machineId);
      const items: MetricItem[] = [];
      const positions = new Map<string, number>();
      const done = new Set<string>();
      let gone = 0;
      for (const machine of first) {
        const { machineId, origin } = machine.target;
        const own = found.get(machineId) ?? [];
        gone += await goneOf(machine, own[0]?.timeMs, nowMs);
        // A machine that tells nothing moves now and then, so that each hour of what is gone counts once.
        if (own.length === 0 && machine.afterMs < nowMs - samplesKeptMs - hourMs)
          positions.set(machineId, nowMs - samplesKeptMs);
        if (own.length < most) done.add(machineId);
        for (const { timeMs, values } of own) {
          positions.set(machineId, timeMs);
          for (const [slot, value] of values) {
            const metric = nameOfSlot.get(slot);
            if (metric !== undefined) items.push({ origin, metric, value, timeMs });
          }
        }
      }
      return { items, positions, done, gone };
    },
  };
}
