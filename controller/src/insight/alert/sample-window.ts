import type { RecentSample } from "../metric/samples/recent-samples.ts";
import type { SampleValue } from "./evaluate-rule.ts";

/** The newest samples of one machine, as far back as its rules look. */
export interface SampleWindow {
  /** From when on it has all that there is. */
  readonly fromMs: number;
  /** The metrics that it has. */
  readonly slots: ReadonlySet<number>;
  /** When the machine told anything last. */
  readonly lastMs: number | undefined;
  /** One metric, oldest first. */
  values(slot: number): readonly SampleValue[];
  /** When the machine told this metric last. */
  newestMs(slot: number): number | undefined;
  /** Takes samples in any order; one that is there already changes nothing. True when one was new. */
  add(samples: readonly RecentSample[]): boolean;
  /** Forgets what is older than the time, but for the newest value, which tells since when there is silence. */
  trim(fromMs: number): void;
}

export function createSampleWindow(fromMs: number, slots: ReadonlySet<number>): SampleWindow {
  const bySlot = new Map<number, SampleValue[]>([...slots].map((slot) => [slot, []]));
  const times = new Set<number>();
  let reachesMs = fromMs;
  let lastMs: number | undefined;
  return {
    slots,
    get fromMs() {
      return reachesMs;
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
      reachesMs = Math.max(reachesMs, toMs);
      for (const time of times) if (time < toMs) times.delete(time);
      for (const list of bySlot.values()) {
        const kept = list.findIndex(({ timeMs }) => timeMs >= toMs);
        list.splice(0, kept === -1 ? Math.max(0, list.length - 1) : kept);
      }
    },
  };
}

/** Keeps the list in the order of times. */
function insert(list: SampleValue[], sample: SampleValue): void {
  let at = list.length;
  while (at > 0 && (list[at - 1]?.timeMs ?? 0) > sample.timeMs) at -= 1;
  if (list[at - 1]?.timeMs !== sample.timeMs) list.splice(at, 0, sample);
}
