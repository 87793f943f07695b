import { setImmediate as yieldToEventLoop } from "node:timers/promises";

/** Bytes to process before yielding to the event loop: about a millisecond of copying, encrypting or writing. */
export const incrementBytes: number = 1 << 20;

/** Concatenates the parts into a new buffer, yielding to the event loop between blocks. */
export async function concatIncrementally(parts: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const size = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const joined = new Uint8Array(Buffer.allocUnsafeSlow(size).buffer);
  let at = 0;
  let sinceYield = 0;
  for (const part of parts) {
    for (let from = 0; from < part.byteLength; from += incrementBytes) {
      const block = part.subarray(from, from + incrementBytes);
      if (sinceYield + block.byteLength > incrementBytes) {
        await yieldToEventLoop();
        sinceYield = 0;
      }
      joined.set(block, at);
      at += block.byteLength;
      sinceYield += block.byteLength;
    }
  }
  return joined;
}

/** Splits the items, in order, into groups of at most `incrementBytes`; a larger item is a group by itself. */
export function groupsBySize<T>(items: readonly T[], bytesOf: (item: T) => number): T[][] {
  const groups: T[][] = [];
  let group: T[] | undefined;
  let size = 0;
  for (const item of items) {
    const bytes = bytesOf(item);
    if (group === undefined || size + bytes > incrementBytes) {
      groups.push((group = []));
      size = 0;
    }
    group.push(item);
    size += bytes;
  }
  return groups;
}
