import type { RecentSample } from "../metric/samples/recent-samples.ts";
import type { SampleValue } from "./evaluate-rule.ts";

/** The newest samples of one machine, as far back as its rules need. */
export interface SampleWindow {
  /** Start of the time range whose samples are complete, in milliseconds since 1970. */
  readonly fromMs: number;
  /** Slots of the metrics in the window. */
  readonly slots: ReadonlySet<number>;
  /** Time of the machine's newest sample. */
  readonly lastMs: number | undefined;
  /** Samples of one metric, oldest first. */
  values(slot: number): readonly SampleValue[];
  /** Time of the newest sample of this metric. */
  newestMs(slot: number): number | undefined;
  /** Adds samples in any order; duplicates change nothing. True if a sample was new. */
  add(samples: readonly RecentSample[]): boolean;
  /**
   * Removes samples that are older than the time, except the newest value of each metric, at which a silence begins.
   */
  trim(fromMs: number): void;
}

export function createSampleWindow(fromMs: number, slots: ReadonlySet<number>): SampleWindow {
  const bySlot = new Map<number, SampleValue[]>([...slots].map((slot) => [slot, []]));
  const times = new Set<number>();
  let coveredFromMs = fromMs;
  let lastMs: number | undefined;
  return {
    slots,
    get fromMs() {
      return coveredFromMs;
    },
    get lastMs() {
      return lastMs;
    },
    values: (slot) => bySlot.get(slot) ?? [],
    newestMs: (slot) => bySlot.get(slot)?.at(-1)?.timeMs,
    add(samples) {
      const before = times.size;
      for (const { timeMs, values } of samples) {
        if (times.has(timeMs)) continue;
        times.add(timeMs);
        lastMs = Math.max(lastMs ?? timeMs, timeMs);
        for (const [slot, list] of bySlot) {
          const value = values.get(slot);
          if (value !== undefined) insert(list, { timeMs, value });
        }
      }
      return times.size > before;
    },
    trim(toMs) {
      coveredFromMs = Math.max(coveredFromMs, toMs);
      for (const time of times) if (time < toMs) times.delete(time);
      for (const list of bySlot.values()) {
        const firstRetained = list.findIndex(({ timeMs }) => timeMs >= toMs);
        list.splice(0, firstRetained === -1 ? Math.max(0, list.length - 1) : firstRetained);
      }
    },
  };
}

/** Inserts the sample in the order of times. */
function insert(list: SampleValue[], sample: SampleValue): void {
  let at = list.length;
  while (at > 0 && (list[at - 1]?.timeMs ?? 0) > sample.timeMs) at -= 1;
  if (list[at - 1]?.timeMs !== sample.timeMs) list.splice(at, 0, sample);
}
