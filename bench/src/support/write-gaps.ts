import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { ShortTimeoutWriter } from "./short-timeout-writer.ts";

/** Faults of the primary; a killed or paused machine stays so until it is repaired. */
export type Fault = "switchover" | "engine killed" | "machine killed" | "machine stands still";

/** A primary and a replica, of the platform or of a peer, under constant writes. */
export interface FailingPair {
  readonly writer: ShortTimeoutWriter;
  /** Resolves when both nodes are healthy, and the replica has almost caught up. */
  settled(): Promise<void>;
  /** Name of the primary's node; undefined while there is none, or it is unknown. */
  primary(): Promise<string | undefined>;
  /** Causes the fault; resolves with its repair. */
  strike(fault: Fault): Promise<() => unknown>;
  close(): Promise<void>;
}

/** Writes within this time of a fault may have started before it. */
const underWayMs = 100;

/**
 * Longest time between two acknowledged writes around a fault, in milliseconds; throws if a required failover did not
 * happen.
 */
export async function gapOf(pair: FailingPair, fault: Fault): Promise<number> {
  const { acknowledgedAt } = pair.writer;
  const startedAt = performance.now();
  await pair.settled();
  const primary = await pair.primary();
  const mark = Math.max(0, acknowledgedAt.length - 1);
  const isOther = async () => ![undefined, primary].includes(await pair.primary());
  const mend = await pair.strike(fault);
  const struckAt = performance.now();
  // A primary that only died may continue as the primary.
  if (fault === "switchover" || fault === "machine stands still") {
    await waitUntil("another is the primary", isOther, { withinMs: 180_000 });
  }
  const isAfter = (at: number | undefined) => (at ?? 0) > struckAt + underWayMs;
  await waitUntil("writes continue", () => isAfter(acknowledgedAt.at(-50)), { withinMs: 180_000 });
  await mend();
  await pair.settled();
  const rows = acknowledgedAt.slice(mark);
  const gap = Math.max(...rows.slice(1).map((at, index) => at - (rows[index] ?? at)));
  console.error(
    `${fault}: ${gap.toFixed(0)} ms without a write, ${(performance.now() - startedAt).toFixed(0)} ms in all`,
  );
  return gap;
}
