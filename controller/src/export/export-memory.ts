import type { LogItem, MetricItem } from "./export-item.ts";

/** Memory of the batches of one controller, from the read of one until its destination has it. */
export interface ExportMemory {
  /**
   * Room for the largest batch, once it is there: who waits longest comes first, and those that fail hold a quarter at most.
   * Rejects with the reason of the signal.
   */
  take(isFailing: boolean, signal: AbortSignal): Promise<BatchRoom>;
  readonly usedBytes: number;
}

export interface BatchRoom {
  /** Gives back what the batch does not need. */
  shrink(bytes: number): void;
  release(): void;
}

export interface MemoryLimits {
  readonly totalBytes: number;
  /** No batch needs more. */
  readonly batchBytes: number;
  readonly failingPart: number;
}

export const exportMemoryLimits: MemoryLimits = { totalBytes: 64 << 20, batchBytes: 8 << 20, failingPart: 1 / 4 };

interface Waiting {
  readonly isFailing: boolean;
  readonly begin: (room: BatchRoom) => void;
}

export function createExportMemory(limits: MemoryLimits = exportMemoryLimits): ExportMemory {
  const { totalBytes, batchBytes, failingPart } = limits;
  const used = { all: 0, failing: 0 };
  const waiting = new Set<Waiting>();

  function fits(isFailing: boolean): boolean {
    if (used.all + batchBytes > totalBytes) return false;
    return !isFailing || used.failing + batchBytes <= totalBytes * failingPart;
  }

  function add(bytes: number, isFailing: boolean): void {
    used.all += bytes;
    if (isFailing) used.failing += bytes;
  }

  function serve(): void {
    for (const each of waiting) {
      if (!fits(each.isFailing)) continue;
      waiting.delete(each);
      each.begin(roomOf(each.isFailing));
    }
  }

  function roomOf(isFailing: boolean): BatchRoom {
    let held = batchBytes;
    add(held, isFailing);
    const shrink = (bytes: number) => {
      const kept = Math.min(held, bytes);
      add(kept - held, isFailing);
      held = kept;
      serve();
    };
    return { shrink, release: () => shrink(0) };
  }

  return {
    take(isFailing, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<BatchRoom>();
      const leave = () => {
        waiting.delete(entry);
        reject(signal.reason as Error);
      };
      const entry: Waiting = {
        isFailing,
        begin(room) {
          signal.removeEventListener("abort", leave);
          resolve(room);
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      waiting.add(entry);
      serve();
      return promise;
    },
    get usedBytes() {
      return used.all;
    },
  };
}

/** Samples and characters of messages that are encoded at a time, so that requests take no more than items do. */
const portion = { samples: 5_000, characters: 512 << 10 };
/** An item with its share of requests: CloudWatch's form has the longest. */
const sampleBytes = 1_000;
const entryBytes = 500;

/** What a batch of samples takes at most, with the requests that are made of it. */
export function bytesOfSamples(items: readonly MetricItem[]): number {
  return items.length * sampleBytes;
}

/** As of samples: a character takes two bytes in an item, and as many in each of the two texts that a request is made of. */
export function bytesOfEntries(items: readonly LogItem[]): number {
  return items.reduce((sum, { message }) => sum + entryBytes + 6 * message.length, 0);
}

export function portionsOfSamples(items: readonly MetricItem[]): readonly (readonly MetricItem[])[] {
  return portionsOf(items, () => 1, portion.samples);
}

export function portionsOfEntries(items: readonly LogItem[]): readonly (readonly LogItem[])[] {
  return portionsOf(items, ({ message }) => message.length, portion.characters);
}

/** In order, each of `most` at most, or of one item. */
function portionsOf<I>(items: readonly I[], sizeOf: (item: I) => number, most: number): readonly (readonly I[])[] {
  const portions: I[][] = [];
  let size = 0;
  for (const item of items) {
    const own = sizeOf(item);
    const last = portions.at(-1);
    if (last !== undefined && size + own <= most) {
      last.push(item);
      size += own;
    } else {
      portions.push([item]);
      size = own;
    }
  }
  return portions;
}
