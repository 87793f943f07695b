import type { ArchivedLogReader } from "./backup-facet.ts";

/** Index of the first object whose header has a later commit time; the last object if none does. */
export async function firstObjectAfter(log: Pick<ArchivedLogReader, "count" | "at">, time: Date): Promise<number> {
  let low = 0;
  let high = log.count - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { header } = await log.at(middle);
    if (header.time !== "" && Date.parse(header.time) > time.getTime()) high = middle;
    else low = middle + 1;
  }
  return low;
}
