import { openRecordFile } from "../journal/record-file.ts";
import type { Sample } from "./sample-source.ts";

/** Samples that no controller has acknowledged, oldest first, on the disk: they outlive the agent and an outage. */
export interface SampleSpool {
  /** Resolves when it is on the disk. When the spool is full the oldest one goes. */
  add(sample: Sample): Promise<void>;
  /** The oldest ones, at most so many. `through` names the last of them. */
  oldest(most: number): { readonly samples: readonly Sample[]; readonly through: number };
  /** Everything up to there is in the history. Resolves when the file is no larger than it may be. */
  forget(through: number): Promise<void>;
  readonly size: number;
  /** Samples that had to go for want of room, since the agent started. */
  readonly lost: number;
  close(): Promise<void>;
}

/** Short names: there are thousands of them in the file. */
interface Entry {
  readonly t: number;
  readonly s: readonly number[];
  readonly v: readonly number[];
}

/** What was acknowledged stays in the file until it is worth a new one; after a crash it is sent again, and history knows it. */
const compactAtBytes = 16 << 10;

/** Keeps at most so many. */
export async function openSampleSpool(path: string, most: number): Promise<SampleSpool> {
  const file = await openRecordFile<Entry>(path);
  const waiting: Entry[] = file.records.slice(-most);
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
    async add({ timeMs, slots, values }) {
      const entry = { t: timeMs, s: slots, v: values };
      waiting.push(entry);
      if (waiting.length > most) {
        drop(1);
        lost += 1;
      }
      await file.append(entry);
      await compact();
    },
    oldest(count) {
      const samples = waiting.slice(0, count).map(({ t, s, v }) => ({ timeMs: t, slots: s, values: v }));
      return { samples, through: first + samples.length };
    },
    async forget(through) {
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
