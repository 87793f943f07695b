import { type Capacity, createCapacityQueue } from "@holdfast/common/concurrency/capacity-queue.ts";
import type { LogItem, MetricItem } from "./export-item.ts";

/** Limits the memory of all batches of one controller, from the read of a batch until its destination accepted it. */
export interface ExportMemory {
  /**
   * Reserves bytes for the largest batch, first come first served; the caller shrinks and releases the reservation.
   * Failing integrations get at most a quarter of the total. Rejects with the reason of the signal.
   */
  reserve(isFailing: boolean, signal: AbortSignal): Promise<Capacity>;
  readonly usedBytes: number;
}

export interface MemoryLimits {
  readonly totalBytes: number;
  /** Upper limit of one batch. */
  readonly batchBytes: number;
  readonly failingPart: number;
}

export const exportMemoryLimits: MemoryLimits = { totalBytes: 64 << 20, batchBytes: 8 << 20, failingPart: 1 / 4 };

export function createExportMemory(limits: MemoryLimits = exportMemoryLimits): ExportMemory {
  const { totalBytes, batchBytes, failingPart } = limits;
  const memory = createCapacityQueue();
  const all = { key: "all", max: totalBytes };
  const failing = { key: "failing", max: totalBytes * failingPart };
  return {
    reserve: (isFailing, signal) =>
      memory.acquire({ limits: isFailing ? [all, failing] : [all], amount: batchBytes }, signal),
    get usedBytes() {
      return memory.used("all");
    },
  };
}

/** Samples, or characters of messages, per encoded portion, so that requests need no more memory than items. */
const portion = { samples: 5_000, characters: 512 << 10 };
/** Bytes of an item with its share of requests; CloudWatch's form is the largest. */
const sampleBytes = 1_000;
const entryBytes = 500;

/** Upper limit of the memory of a batch of samples and its requests, in bytes. */
export function bytesOfSamples(items: readonly MetricItem[]): number {
  return items.length * sampleBytes;
}

/**
 * Upper limit of the memory of a batch of log entries, in bytes: a character takes two in the item and in each of the
 * two texts of a request.
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

/** Splits items in order into portions of at most `max` in size; a larger item gets a separate portion. */
function portionsOf<I>(items: readonly I[], sizeOf: (item: I) => number, max: number): readonly (readonly I[])[] {
  const portions: I[][] = [];
  let size = 0;
  for (const item of items) {
    const own = sizeOf(item);
    const last = portions.at(-1);
    if (last !== undefined && size + own <= max) {
      last.push(item);
      size += own;
    } else {
      portions.push([item]);
      size = own;
    }
  }
  return portions;
}
