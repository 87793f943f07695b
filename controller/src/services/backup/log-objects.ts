import { logObject, logsPrefix } from "@holdfast/common/backup/object-names.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { LogRange } from "./archive.ts";
import { leaving } from "./log-archive.ts";
import { objectsBelow } from "./stored-prefix.ts";

/**
 * Deletes what of a service's log is in no range any more: the objects that the ranges of before had, and whatever lies in front of
 * all that is kept. A primary that was replaced may have stored more than anybody noted. May be cut off at any point, and begun again.
 */
export async function deleteLog(
  objects: Pick<ObjectStore, "list" | "delete">,
  service: string,
  before: readonly LogRange[],
  after: readonly LogRange[],
  signal: AbortSignal,
): Promise<void> {
  for (const { range, end } of leaving(before, after))
    for (let sequence = range.firstSequence; sequence < end; sequence += 1) {
      signal.throwIfAborted();
      await objects.delete(logObject({ service, term: range.term }, sequence));
    }
  if (leaving(before, after).length === 0) return;
  // Names sort as terms and numbers do.
  const [first] = after.map(({ term, firstSequence }) => logObject({ service, term }, firstSequence)).toSorted();
  if (first === undefined) return;
  for await (const { key } of objectsBelow(objects, logsPrefix(service), { signal })) {
    if (key >= first) return;
    await objects.delete(key);
  }
}
