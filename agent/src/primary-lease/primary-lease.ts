import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** State of a PrimaryLease as plain data, so that tests can enumerate it. */
export interface PrimaryLeaseState {
  /** Requests that can still be granted in time, with the time each was sent. */
  sent: [number: number, atMs: number][];
  owner: string;
  highest: number;
  untilMs: number;
  grantedMs: number;
}

export function newPrimaryLease(nowMs: number): PrimaryLeaseState {
  return { sent: [], owner: "", highest: 0, untilMs: 0, grantedMs: nowMs };
}

/**
 * The primary lease of one machine under one term, by numbered requests. A grant for a request of another term has no
 * effect.
 */
export interface PrimaryLease {
  readonly lengthMs: number;
  /** End of the lease in milliseconds since the start of the host; 0 without a lease. */
  readonly untilMs: number;
  /** Sets the service and term of the lease. A new term starts without a lease. */
  bindTo(spec: Pick<InstanceSpec, "serviceId" | "term"> | undefined): void;
  isBoundTo(spec: Pick<InstanceSpec, "serviceId" | "term">): boolean;
  /** Returns the number of a request that is sent now, above every number `seen` by the keeper. */
  nextNumber(seen: number): number;
  /**
   * Returns the end of the lease that a grant of this request gives; undefined if the grant is late or of another term.
   */
  grantedUntil(number: number): number | undefined;
  /** The keeper kills the engine by then, so the lease counts until then. */
  extendedTo(untilMs: number): void;
  /** Milliseconds since the last granted request was sent, or since the first request. */
  sinceGrantMs(): number;
}

export function createPrimaryLease(
  bootMs: () => number,
  state: PrimaryLeaseState = newPrimaryLease(bootMs()),
): PrimaryLease {
  const keyOf = ({ serviceId, term }: Pick<InstanceSpec, "serviceId" | "term">) => `${serviceId}/${term}`;

  return {
    lengthMs: primaryLeaseMs,
    get untilMs() {
      return state.untilMs;
    },
    bindTo(spec) {
      const next = spec === undefined ? "" : keyOf(spec);
      if (next === state.owner) return;
      Object.assign(state, { owner: next, untilMs: 0, grantedMs: bootMs(), sent: [] });
    },
    isBoundTo: (spec) => state.owner === keyOf(spec),
    nextNumber(seen) {
      state.highest = Math.max(state.highest, seen) + 1;
      const nowMs = bootMs();
      state.sent = [...state.sent.filter(([, atMs]) => nowMs - atMs <= primaryLeaseMs), [state.highest, nowMs]];
      return state.highest;
    },
    grantedUntil(number) {
      const sentMs = state.sent.find(([each]) => each === number)?.[1];
      if (sentMs === undefined || bootMs() - sentMs >= primaryLeaseMs) return undefined;
      state.grantedMs = Math.max(state.grantedMs, sentMs);
      return sentMs + primaryLeaseMs;
    },
    extendedTo(until) {
      state.untilMs = Math.max(state.untilMs, until);
    },
    sinceGrantMs: () => bootMs() - state.grantedMs,
  };
}
