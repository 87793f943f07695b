import type { RecentSample } from "./samples/recent-samples.ts";

/** Up to when a reader has the samples of each node, milliseconds since 1970, by the node's id. */
export type SamplePosition = ReadonlyMap<string, number>;

export interface SamplePage {
  readonly samples: readonly RecentSample[];
  readonly position: SamplePosition;
  readonly more: boolean;
}

/**
 * Pure: the first samples of all nodes, the oldest first. Each node's come in their order, but a node that was cut off tells its
 * hours later than the others, so each has a position of its own.
 */
export function samplePage(read: readonly RecentSample[], before: SamplePosition, limit: number): SamplePage {
  const inOrder = read.toSorted((a, b) => a.timeMs - b.timeMs || (a.machineId < b.machineId ? -1 : 1));
  const samples = inOrder.slice(0, limit);
  const position = new Map(before);
  for (const { machineId, timeMs } of samples) position.set(machineId, timeMs);
  return { samples, position, more: inOrder.length > limit };
}

/** The end of a node's id and a time, for each. */
export function positionText(position: SamplePosition): string {
  return [...position].map(([id, timeMs]) => `${shortOf(id)}${timeMs.toString(36)}`).join(",");
}

/** Of these nodes; one that the text does not know begins where the first of the others is. */
export function readPosition(text: string, nodeIds: readonly string[]): SamplePosition {
  const parts = text.split(",").filter((part) => part !== "");
  const known = new Map(
    parts.map((part) => [part.slice(0, shortLength), Number.parseInt(part.slice(shortLength), 36)]),
  );
  const first = Math.min(...known.values(), Number.MAX_SAFE_INTEGER);
  return new Map(nodeIds.map((id) => [id, known.get(shortOf(id)) ?? first]));
}

const shortLength = 12;

/** The random end: ids that were made together begin alike. */
function shortOf(id: string): string {
  return id.slice(-shortLength);
}
