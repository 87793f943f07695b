import { hash } from "#kernel/runtime/ownership.ts";
import type { RunState } from "./export-run-state.ts";
import type { Standing } from "./export-slots.ts";

/** Failed ticks after which an integration is said to fail. */
const failuresTold = 10;
const failingEveryMs = 5 * 60_000;
const disabledAfterMs = 7 * 86_400_000;
/** The first tick of what is new or changed comes so soon. */
const firstAfterMs = 5_000;
/** So long it is new: machines tell samples each quarter of a minute. */
const newForMs = 60_000;

interface Timing {
  readonly id: string;
  readonly intervalMs: number;
  readonly changedAt: number;
}

/** Pure: when an integration is due that this controller has just come to work on, soon if it was just changed. Those of one interval are spread over it. */
export function firstDueAt({ id, intervalMs, changedAt }: Timing, nowMs: number): number {
  const spread = nextOfPhase(id, intervalMs, nowMs);
  return nowMs - changedAt < intervalMs ? Math.min(spread, nowMs + firstAfterMs) : spread;
}

/**
 * Pure: when it is due again. One that is new and has sent no sample yet is looked at again soon, so that its maker sees the first; one
 * that fails is asked less often, and never before the time that its destination named.
 */
export function nextDueAt(
  { id, intervalMs, changedAt }: Timing,
  state: Pick<RunState, "consecutiveFailures" | "samples">,
  nowMs: number,
  afterMs = 0,
): number {
  const isFailing = state.consecutiveFailures >= failuresTold;
  const everyMs = isFailing ? Math.max(intervalMs, failingEveryMs) : intervalMs;
  const isNew = state.samples === 0 && state.consecutiveFailures === 0 && nowMs - changedAt < newForMs;
  const next = nextOfPhase(id, everyMs, nowMs);
  return Math.max(isNew ? Math.min(next, nowMs + firstAfterMs) : next, nowMs + afterMs);
}

/** Pure: how its destination stands. One failure is enough, since it may take minutes to fail again; a change may lead elsewhere. */
export function standingOf(
  { consecutiveFailures, lastExportMs }: Pick<RunState, "consecutiveFailures" | "lastExportMs">,
  { changedAt }: Pick<Timing, "changedAt">,
): Standing {
  if (consecutiveFailures > 0) return "failing";
  return lastExportMs === null || lastExportMs < changedAt ? "new" : "well";
}

/** The next moment, of those that are an interval apart, which the id gives. */
function nextOfPhase(id: string, everyMs: number, nowMs: number): number {
  const phase = hash(id) % everyMs;
  return Math.floor((nowMs - phase) / everyMs + 1) * everyMs + phase;
}

/** Pure: what a tick's end has to be followed by. */
export function followUp(state: RunState, nowMs: number): "disable" | "tellFailing" | "tellRecovered" | "nothing" {
  if (state.failingSinceMs !== null && nowMs - state.failingSinceMs >= disabledAfterMs) return "disable";
  if (state.consecutiveFailures >= failuresTold && !state.isTold) return "tellFailing";
  if (state.consecutiveFailures === 0 && state.isTold) return "tellRecovered";
  return "nothing";
}

/** Pure: how old the oldest thing is that may wait, in seconds. */
export function backlogSeconds({ behindSinceMs }: Pick<RunState, "behindSinceMs">, nowMs: number): number {
  return behindSinceMs === null ? 0 : Math.max(0, Math.round((nowMs - behindSinceMs) / 1_000));
}
