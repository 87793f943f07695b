import type { Samples } from "../metric/samples/samples.ts";
import { staleAfterMs } from "./evaluate-rule.ts";
import { createSampleWindow, type SampleWindow } from "./sample-window.ts";

/** The metrics and time range that rules need of one machine. */
export interface SampleRange {
  readonly fromMs: number;
  readonly slots: ReadonlySet<number>;
}

/** Reads the samples that rules need: the complete time range of a machine once, then only new samples. */
export interface SampleReader {
  /** Reads in one statement; resolves to the machines with new samples. Throws STORE_UNAVAILABLE. */
  read(ranges: ReadonlyMap<string, SampleRange>): Promise<ReadonlySet<string>>;
  /** The machine's samples; undefined until its time range was read. */
  window(machineId: string): SampleWindow | undefined;
}

/**
 * Maximum time by which a sample may arrive after a newer one and is still read. Later samples are only read with the
 * complete range.
 */
const overlapMs = staleAfterMs;
/** Maximum number of machines whose complete range is read in one statement. */
const initialReadsMax = 200;

export function createSampleReader(samples: Pick<Samples, "recent">): SampleReader {
  const windows = new Map<string, SampleWindow>();

  function covers(window: SampleWindow | undefined, { fromMs, slots }: SampleRange): window is SampleWindow {
    return window !== undefined && window.fromMs <= fromMs && slots.isSubsetOf(window.slots);
  }

  return {
    async read(ranges) {
      for (const machineId of windows.keys()) if (!ranges.has(machineId)) windows.delete(machineId);
      let initialReads = 0;
      const queries = [...ranges].flatMap(([machineId, range]) => {
        const window = windows.get(machineId);
        if (covers(window, range))
          return [{ machineId, window, afterMs: Math.max(range.fromMs, (window.lastMs ?? 0) - overlapMs) }];
        initialReads += 1;
        if (initialReads > initialReadsMax) return [];
        return [{ machineId, window: createSampleWindow(range.fromMs, range.slots), afterMs: range.fromMs - 1 }];
      });
      const slots = new Set([...ranges.values()].flatMap((range) => [...range.slots]));
      const rows = Map.groupBy(await samples.recent(queries, [...slots]), ({ machineId }) => machineId);
      const updated = new Set<string>();
      for (const { machineId, window } of queries) {
        windows.set(machineId, window);
        if (window.add(rows.get(machineId) ?? [])) updated.add(machineId);
        window.trim(ranges.get(machineId)?.fromMs ?? 0);
      }
      return updated;
    },
    window: (machineId) => windows.get(machineId),
  };
}
