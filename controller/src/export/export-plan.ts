import { hash } from "#kernel/runtime/ownership.ts";
import type { RunState } from "./export-run-state.ts";
import type { Standing } from "./export-concurrency.ts";

/** Failed ticks after which an integration is announced as failing. */
const failuresAnnounced = 10;
const failingEveryMs = 5 * 60_000;
const disabledAfterMs = 7 * 86_400_000;
/** Delay of the first tick of a new or changed integration. */
const firstAfterMs = 5_000;
/** Duration for which an integration counts as new; machines report samples every 15 s. */
const newForMs = 60_000;

interface Timing {
  readonly id: string;
  readonly intervalMs: number;
  readonly changedAt: number;
}

/**
 * Time of the first tick after this controller took over the integration; at most 5 s after a change. Integrations with
 * the same interval are spread over it.
 */
export function firstDueAt({ id, intervalMs, changedAt }: Timing, nowMs: number): number {
  const spread = nextOfPhase(id, intervalMs, nowMs);
  return nowMs - changedAt < intervalMs ? Math.min(spread, nowMs + firstAfterMs) : spread;
}

/**
 * Time of the next tick. A new integration that has sent nothing is due again after 5 s, so that its user sees the
 * first sample. A failing one is due every five minutes or less often; a delay that its destination requested stays.
 */
export function nextDueAt(
  { id, intervalMs, changedAt }: Timing,
  state: Pick<RunState, "consecutiveFailures" | "samples">,
  nowMs: number,
  afterMs = 0,
): number {
  const isFailing = state.consecutiveFailures >= failuresAnnounced;
  const everyMs = isFailing ? Math.max(intervalMs, failingEveryMs) : intervalMs;
  const isNew = state.samples === 0 && state.consecutiveFailures === 0 && nowMs - changedAt < newForMs;
  const next = nextOfPhase(id, everyMs, nowMs);
  return Math.max(isNew ? Math.min(next, nowMs + firstAfterMs) : next, nowMs + afterMs);
}

/**
 * The standing of the destination. A single failure makes it failing, because the next one can take minutes; a
 * change of the integration makes it new.
 */
export function standingOf(
  { consecutiveFailures, lastExportMs }: Pick<RunState, "consecutiveFailures" | "lastExportMs">,
  { changedAt }: Pick<Timing, "changedAt">,
): Standing {
  if (consecutiveFailures > 0) return "failing";
  return lastExportMs === null || lastExportMs < changedAt ? "new" : "healthy";
}

/** The next time of a series with this interval, whose phase is a hash of the id. */
function nextOfPhase(id: string, everyMs: number, nowMs: number): number {
  const phase = hash(id) % everyMs;
  return Math.floor((nowMs - phase) / everyMs + 1) * everyMs + phase;
}

/** The action that follows a tick, by the stored state after it. */
export function followUp(
  state: RunState,
  nowMs: number,
): "disable" | "announceFailing" | "announceRecovered" | "nothing" {
  if (state.failingSinceMs !== null && nowMs - state.failingSinceMs >= disabledAfterMs) return "disable";
  if (state.consecutiveFailures >= failuresAnnounced && !state.isAnnounced) return "announceFailing";
  if (state.consecutiveFailures === 0 && state.isAnnounced) return "announceRecovered";
  return "nothing";
}

/** Upper limit of the age of the oldest undelivered item, in seconds. */
export function backlogSeconds({ behindSinceMs }: Pick<RunState, "behindSinceMs">, nowMs: number): number {
  return behindSinceMs === null ? 0 : Math.max(0, Math.round((nowMs - behindSinceMs) / 1_000));
}
