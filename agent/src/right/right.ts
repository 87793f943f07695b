import { rightMs } from "@holdfast/common/right.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** What is known of a right; plain data, so that what follows from it can be tried out. */
export interface RightState {
  /** Requests that may be answered in time, with when they were sent. */
  sent: [number: number, atMs: number][];
  holder: string;
  highest: number;
  untilMs: number;
  grantedMs: number;
}

export function newRight(nowMs: number): RightState {
  return { sent: [], holder: "", highest: 0, untilMs: 0, grantedMs: nowMs };
}

/** The right of one machine under one term, by numbered requests. Nothing that was asked for under another term counts. */
export interface Right {
  readonly lengthMs: number;
  /** By the host's clock; 0 without one. */
  readonly untilMs: number;
  /** Whose right it is from now on: a new term begins without any. */
  holdFor(spec: Pick<InstanceSpec, "serviceId" | "term"> | undefined): void;
  isFor(spec: Pick<InstanceSpec, "serviceId" | "term">): boolean;
  /** Of a request that is sent now. */
  nextNumber(known: number): number;
  /** Until when the answer to this request is good; undefined when it came too late, or is of another term. */
  granted(number: number): number | undefined;
  /** The engine is sure to end by then. */
  extended(untilMs: number): void;
  /** How long ago the last request was sent that was granted, or the first of all. */
  unansweredMs(): number;
}

export function createRight(bootMs: () => number, state: RightState = newRight(bootMs())): Right {
  const keyOf = ({ serviceId, term }: Pick<InstanceSpec, "serviceId" | "term">) => `${serviceId}/${term}`;

  return {
    lengthMs: rightMs,
    get untilMs() {
      return state.untilMs;
    },
    holdFor(spec) {
      const next = spec === undefined ? "" : keyOf(spec);
      if (next === state.holder) return;
      Object.assign(state, { holder: next, untilMs: 0, grantedMs: bootMs(), sent: [] });
    },
    isFor: (spec) => state.holder === keyOf(spec),
    nextNumber(known) {
      state.highest = Math.max(state.highest, known) + 1;
      const nowMs = bootMs();
      state.sent = [...state.sent.filter(([, atMs]) => nowMs - atMs <= rightMs), [state.highest, nowMs]];
      return state.highest;
    },
    granted(number) {
      const sentMs = state.sent.find(([each]) => each === number)?.[1];
      if (sentMs === undefined || bootMs() - sentMs >= rightMs) return undefined;
      state.grantedMs = Math.max(state.grantedMs, sentMs);
      return sentMs + rightMs;
    },
    extended(until) {
      state.untilMs = Math.max(state.untilMs, until);
    },
    unansweredMs: () => bootMs() - state.grantedMs,
  };
}
