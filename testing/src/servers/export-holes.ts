import type { StoredValue } from "../platform/stored-samples.ts";
import { readKey } from "./export-items.ts";
import type { ReadItem } from "./export-readers.ts";

type Value = Pick<ReadItem, "nodeId" | "name" | "timeMs" | "value">;

/** Values in the history of each node that a receiver lacks, up to the newest one that it has. */
export function holesIn(received: readonly Value[], stored: readonly StoredValue[]): string[] {
  const keys = new Set(received.map(readKey));
  const newest = new Map<string, number>();
  for (const { nodeId, timeMs } of received) newest.set(nodeId, Math.max(newest.get(nodeId) ?? 0, timeMs));
  return stored
    .filter(({ nodeId, timeMs }) => timeMs <= (newest.get(nodeId) ?? 0))
    .map(readKey)
    .filter((key) => !keys.has(key));
}
