import type { RecentSample } from "../metric/samples/sample-points.ts";
import type { Samples } from "../metric/samples/samples.ts";
import { type SampleValue, staleAfterMs } from "./evaluate-rule.ts";

/** The metrics and time range that rules need of one machine. */
export interface SampleRange {
  readonly fromMs: number;
  readonly metricNumbers: ReadonlySet<number>;
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

  function covers(window: SampleWindow | undefined, { fromMs, metricNumbers }: SampleRange): window is SampleWindow {
    return window !== undefined && window.fromMs <= fromMs && metricNumbers.isSubsetOf(window.metricNumbers);
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
        return [
          { machineId, window: createSampleWindow(range.fromMs, range.metricNumbers), afterMs: range.fromMs - 1 },
        ];
      });
      const metricNumbers = new Set([...ranges.values()].flatMap((range) => [...range.metricNumbers]));
      const rows = Map.groupBy(await samples.recent(queries, [...metricNumbers]), ({ machineId }) => machineId);
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

/** The newest samples of one machine, as far back as its rules need. */
interface SampleWindow {
  /** Start of the time range whose samples are complete, in milliseconds since 1970. */
  readonly fromMs: number;
  /** Slots of the metrics in the window. */
  readonly metricNumbers: ReadonlySet<number>;
  /** Time of the machine's newest sample. */
  readonly lastMs: number | undefined;
  /** Samples of one metric, oldest first. */
  values(metricNumber: number): readonly SampleValue[];
  /** Time of the newest sample of this metric. */
  newestMs(metricNumber: number): number | undefined;
  /** Adds samples in any order; duplicates change nothing. True if a sample was new. */
  add(samples: readonly RecentSample[]): boolean;
  /**
   * Removes samples that are older than the time, except the newest value of each metric, at which a silence begins.
   */
  trim(fromMs: number): void;
}

function createSampleWindow(fromMs: number, metricNumbers: ReadonlySet<number>): SampleWindow {
  const byNumber = new Map<number, SampleValue[]>([...metricNumbers].map((metricNumber) => [metricNumber, []]));
  const times = new Set<number>();
  let coveredFromMs = fromMs;
  let lastMs: number | undefined;
  return {
    metricNumbers,
    get fromMs() {
      return coveredFromMs;
    },
    get lastMs() {
      return lastMs;
    },
    values: (metricNumber) => byNumber.get(metricNumber) ?? [],
    newestMs: (metricNumber) => byNumber.get(metricNumber)?.at(-1)?.timeMs,
    add(samples) {
      const before = times.size;
      for (const { timeMs, values } of samples) {
        if (times.has(timeMs)) continue;
        times.add(timeMs);
        lastMs = Math.max(lastMs ?? timeMs, timeMs);
        for (const [metricNumber, list] of byNumber) {
          const value = values.get(metricNumber);
          if (value !== undefined) insert(list, { timeMs, value });
        }
      }
      return times.size > before;
    },
    trim(toMs) {
      coveredFromMs = Math.max(coveredFromMs, toMs);
      for (const time of times) if (time < toMs) times.delete(time);
      for (const list of byNumber.values()) {
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
