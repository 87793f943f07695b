import type { QueryOrder } from "@holdfast/sdk/requests.ts";
import type { QueryStatistic, RunningQuery } from "@holdfast/sdk/responses.ts";
import { durationText, numberText } from "../format.ts";

/** Orders of the statistics, with their names. */
export const orders: readonly (readonly [QueryOrder, string])[] = [
  ["total_time", "Total time"],
  ["mean_time", "Average time"],
  ["calls", "Calls"],
  ["rows", "Rows"],
];

/** Milliseconds in a readable unit: "0.25 ms", "3.4 s", "12 min". */
export function timeText(ms: number): string {
  if (ms < 1_000) return `${numberText(ms)} ms`;
  return ms < 60_000 ? `${numberText(ms / 1_000)} s` : durationText(ms / 1_000);
}

/** The share of blocks that were in memory: "99%"; empty if no blocks were read. */
export function hitText({ cache_hit_ratio: ratio }: Pick<QueryStatistic, "cache_hit_ratio">): string {
  return ratio === null ? "" : `${numberText(Math.round(ratio * 1_000) / 10)}%`;
}

/** State of a session, with the event or the sessions for which it waits. */
export function stateText({ state, wait, blocked_by: blockers }: RunningQuery): string {
  if (blockers.length > 0) return `${state}, blocked by ${blockers.join(", ")}`;
  return wait === null ? state : `${state}, waits for ${wait}`;
}
