import { openRecordFile } from "../journal/record-file.ts";
import type { Sample } from "../workload/sample-source.ts";

/** Unacknowledged samples on disk, oldest first. They survive the agent and an outage of controllers. */
export interface SampleSpool {
  /** Resolves once the sample is on disk. A full spool drops its oldest sample. */
  add(sample: Sample): Promise<void>;
  /** Returns up to `max` of the oldest samples. `through` is a cursor after the last of them. */
  oldest(max: number): { readonly samples: readonly Sample[]; readonly through: number };
  /**
   * Removes the samples up to the cursor, which are in the history. Resolves once the file is compacted if it was due.
   */
  remove(through: number): Promise<void>;
  readonly size: number;
  /** Samples dropped by a full spool since the agent started. */
  readonly lost: number;
  close(): Promise<void>;
}

/** Short names, since the file has thousands of entries. */
interface Entry {
  readonly t: number;
  readonly s: readonly number[];
  readonly v: readonly number[];
}

/**
 * Size in bytes above which the file is compacted. Acknowledged samples remain in the file until then; after a crash
 * they are sent again, and the history ignores duplicates.
 */
const compactAtBytes = 16 << 10;

/** `max` is the largest number of samples. */
export async function openSampleSpool(path: string, max: number): Promise<SampleSpool> {
  const file = await openRecordFile<Entry>(path);
  const waiting: Entry[] = file.records.slice(-max);
  let first = 0;
  let lost = 0;
  let compactAbove = compactAtBytes;

  async function compact(): Promise<void> {
    if (file.sizeBytes < compactAbove) return;
    compactAbove = Number.POSITIVE_INFINITY;
    try {
      await file.rewrite(() => waiting);
    } finally {
      compactAbove = Math.max(compactAtBytes, file.sizeBytes * 2);
    }
  }

  function drop(count: number): void {
    waiting.splice(0, count);
    first += count;
  }

  return {
    async add({ timeMs, metricNumbers, values }) {
      const entry = { t: timeMs, s: metricNumbers, v: values };
      waiting.push(entry);
      if (waiting.length > max) {
        drop(1);
        lost += 1;
      }
      await file.append(entry);
      await compact();
    },
    oldest(count) {
      const samples = waiting.slice(0, count).map(({ t, s, v }) => ({ timeMs: t, metricNumbers: s, values: v }));
      return { samples, through: first + samples.length };
    },
    async remove(through) {
      drop(Math.max(0, through - first));
      await compact();
    },
    get size() {
      return waiting.length;
    },
    get lost() {
      return lost;
    },
    close: () => file.close(),
  };
}
