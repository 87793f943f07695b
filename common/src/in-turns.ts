import { setImmediate as turn } from "node:timers/promises";

/** As much as is worked on before others have their turn on the event loop: about a millisecond of copying, sealing or writing out. */
export const turnBytes: number = 1 << 20;

/** The parts behind one another, in memory of their own. */
export async function concatInTurns(parts: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const size = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const whole = new Uint8Array(Buffer.allocUnsafeSlow(size).buffer);
  let at = 0;
  let sinceTurn = 0;
  for (const part of parts) {
    for (let from = 0; from < part.byteLength; from += turnBytes) {
      const block = part.subarray(from, from + turnBytes);
      if (sinceTurn + block.byteLength > turnBytes) {
        await turn();
        sinceTurn = 0;
      }
      whole.set(block, at);
      at += block.byteLength;
      sinceTurn += block.byteLength;
    }
  }
  return whole;
}

/** The items in their order, so many together that each group has at most `turnBytes`, or is a single item. */
export function groupsOf<T>(items: readonly T[], bytesOf: (item: T) => number): T[][] {
  const groups: T[][] = [];
  let group: T[] | undefined;
  let size = 0;
  for (const item of items) {
    const bytes = bytesOf(item);
    if (group === undefined || size + bytes > turnBytes) {
      groups.push((group = []));
      size = 0;
    }
    group.push(item);
    size += bytes;
  }
  return groups;
}
