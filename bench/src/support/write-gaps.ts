import { waitUntil } from "@holdfast/test/support/wait-until.ts";
import type { ImpatientWriter } from "./impatient-writer.ts";

/** What happens to the primary; a machine that is killed or stands still stays so until it is mended. */
export type Fault = "switchover" | "engine killed" | "machine killed" | "machine stands still";

/** A primary and a replica, of the platform or of a peer, that somebody writes to all the time. */
export interface FailingPair {
  readonly writer: ImpatientWriter;
  /** Resolves when both nodes are well, and the replica lacks next to nothing. */
  settled(): Promise<void>;
  /** Name of the node that is the primary; undefined while nobody is, or nobody knows. */
  primary(): Promise<string | undefined>;
  /** Resolves once the fault is there; answers what mends it. */
  strike(fault: Fault): Promise<() => unknown>;
  close(): Promise<void>;
}

/** What is written within this time of a fault may have been under way before. */
const underWayMs = 100;

/** The longest time between two writes that were acknowledged, around a fault, in milliseconds; throws if nobody took over who must. */
export async function gapOf(pair: FailingPair, fault: Fault): Promise<number> {
  const { acknowledgedAt } = pair.writer;
  const begun = performance.now();
  await pair.settled();
  const primary = await pair.primary();
  const mark = Math.max(0, acknowledgedAt.length - 1);
  const isOther = async () => ![undefined, primary].includes(await pair.primary());
  const mend = await pair.strike(fault);
  const struckAt = performance.now();
  // A primary that only died may go on as one.
  if (fault === "switchover" || fault === "machine stands still") {
    await waitUntil("another is the primary", isOther, { withinMs: 180_000 });
  }
  const isAfter = (at: number | undefined) => (at ?? 0) > struckAt + underWayMs;
  await waitUntil("writes go on", () => isAfter(acknowledgedAt.at(-50)), { withinMs: 180_000 });
  await mend();
  await pair.settled();
  const rows = acknowledgedAt.slice(mark);
  const gap = Math.max(...rows.slice(1).map((at, index) => at - (rows[index] ?? at)));
  console.error(`${fault}: ${gap.toFixed(0)} ms without a write, ${(performance.now() - begun).toFixed(0)} ms in all`);
  return gap;
}
