import type { LogItem, MetricItem } from "./export-item.ts";

/** Limits the memory of all batches of one controller, from the read of a batch until its destination has it. */
export interface ExportMemory {
  /**
   * Reserves memory for the largest batch, first come first served. Failing integrations get at most a quarter of the
   * total. Rejects with the reason of the signal.
   */
  reserve(isFailing: boolean, signal: AbortSignal): Promise<BatchBudget>;
  readonly usedBytes: number;
}

export interface BatchBudget {
  /** Releases what the batch does not need. */
  shrink(bytes: number): void;
  release(): void;
}

export interface MemoryLimits {
  readonly totalBytes: number;
  /** Upper limit of one batch. */
  readonly batchBytes: number;
  readonly failingPart: number;
}

export const exportMemoryLimits: MemoryLimits = { totalBytes: 64 << 20, batchBytes: 8 << 20, failingPart: 1 / 4 };

interface Waiting {
  readonly isFailing: boolean;
  readonly begin: (budget: BatchBudget) => void;
}

export function createExportMemory(limits: MemoryLimits = exportMemoryLimits): ExportMemory {
  const { totalBytes, batchBytes, failingPart } = limits;
  const used = { all: 0, failing: 0 };
  const waiting = new Set<Waiting>();

  function hasCapacity(isFailing: boolean): boolean {
    if (used.all + batchBytes > totalBytes) return false;
    return !isFailing || used.failing + batchBytes <= totalBytes * failingPart;
  }

  function add(bytes: number, isFailing: boolean): void {
    used.all += bytes;
    if (isFailing) used.failing += bytes;
  }

  function serve(): void {
    for (const each of waiting) {
      if (!hasCapacity(each.isFailing)) continue;
      waiting.delete(each);
      each.begin(budgetOf(each.isFailing));
    }
  }

  function budgetOf(isFailing: boolean): BatchBudget {
    let reserved = batchBytes;
    add(reserved, isFailing);
    const shrink = (bytes: number) => {
      const remaining = Math.min(reserved, bytes);
      add(remaining - reserved, isFailing);
      reserved = remaining;
      serve();
    };
    return { shrink, release: () => shrink(0) };
  }

  return {
    reserve(isFailing, signal) {
      signal.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<BatchBudget>();
      const cancel = () => {
        waiting.delete(entry);
        reject(signal.reason as Error);
      };
      const entry: Waiting = {
        isFailing,
        begin(budget) {
          signal.removeEventListener("abort", cancel);
          resolve(budget);
        },
      };
      signal.addEventListener("abort", cancel, { once: true });
      waiting.add(entry);
      serve();
      return promise;
    },
    get usedBytes() {
      return used.all;
    },
  };
}

/** Samples, or characters of messages, that are encoded at a time, so that requests need no more memory than items. */
const portion = { samples: 5_000, characters: 512 << 10 };
/** Size of an item with its share of requests; CloudWatch's form is the largest. */
const sampleBytes = 1_000;
const entryBytes = 500;

/** Upper limit of the memory of a batch of samples and its requests. */
export function bytesOfSamples(items: readonly MetricItem[]): number {
  return items.length * sampleBytes;
}

/**
 * Upper limit of the memory of a batch of log entries: a character takes two bytes in the item and in each of the two
 * texts of a request.
 */
export function bytesOfEntries(items: readonly LogItem[]): number {
  return items.reduce((sum, { message }) => sum + entryBytes + 6 * message.length, 0);
}

export function portionsOfSamples(items: readonly MetricItem[]): readonly (readonly MetricItem[])[] {
  return portionsOf(items, () => 1, portion.samples);
}

export function portionsOfEntries(items: readonly LogItem[]): readonly (readonly LogItem[])[] {
  return portionsOf(items, ({ message }) => message.length, portion.characters);
}

/** Splits items in order into portions of size `most` or less; a larger item is a portion of its own. */
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
