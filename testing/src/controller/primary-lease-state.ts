import type { ReplicationSilenceState } from "@holdfast/agent/primary-lease/replication-silence.ts";
import {
  createPrimaryLease,
  newPrimaryLease,
  type PrimaryLeaseState,
} from "@holdfast/agent/primary-lease/primary-lease.ts";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";

/** The service in the store: `a` is its primary until another one is named. */
interface Stored {
  readonly revision: number;
  readonly primary: "a" | "b";
  readonly isFenced: boolean;
}

/** A controller, whose view is as old as its last read. */
export interface Controller {
  view: Stored;
  /** Time of that read by the controller's own clock. */
  viewMs: number;
  /** A read in progress; its result counts from its start. */
  reading: { readonly stored: Stored; readonly atMs: number } | undefined;
  /** Time at which the controller first read the fence, by its own clock. */
  fencedMs: number | undefined;
  grantedMs: number | undefined;
  /** A decision that is not written yet. */
  decided: { readonly revision: number; readonly primary: "a" | "b" } | undefined;
  hasLease: boolean;
  /** The controller grants no lease until its view is newer than this revision. */
  revokedRevision: number;
  /** The other controller's response about its grants: for this time it has granted nothing. */
  peerGrants: { readonly revision: number; readonly ungrantedForMs: number } | undefined;
  /** True if the primary released its lease, and stopped immediately. */
  hasLeft: boolean;
  /** Time at which this controller saw the other one leave, by its own clock. */
  aloneMs: number | undefined;
  /** Revision under which the controller ordered the machine's host to end the machine; undefined: no order. */
  ordered: number | undefined;
  proven: number | undefined;
}

/** Writes of the primary since a start of its engine. */
interface History {
  readonly number: number;
  /** Number of rows in earlier histories. */
  readonly rowsBefore: number;
}

/**
 * Complete state of the model, as plain data. Times are of a reference clock that no party has; each party's own clock
 * is a little faster or slower.
 */
export interface PrimaryLeaseModel {
  nowMs: number;
  stored: Stored;
  controllers: [Controller, Controller];
  lease: PrimaryLeaseState;
  /** Messages in flight, which may arrive at any time or never. */
  requests: number[];
  grants: number[];
  extensions: { readonly number: number; readonly untilMs: number; readonly leftMs: number }[];
  /** The keeper's deadline, by the host's clock, and the highest number that it accepted. */
  deadlineMs: number;
  number: number;
  isUp: boolean;
  /** True if the node's disk records that it is not the primary. */
  isReplicaOnDisk: boolean;
  /** Connectivity between `a` and `b`. */
  isLinked: boolean;
  isConnected: boolean;
  /** A vote in progress: `b` has received the row written for it, or not yet. */
  vote: { readonly number: number; readonly atMs: number; isReceived: boolean } | undefined;
  /** The receive positions that b's agent saw at its last check. */
  silence: ReplicationSilenceState;
  written: number;
  received: number;
  /** Current history; engines without timelines count positions from 0 again in each history. */
  history: History;
  /** The history that b's positions belong to. */
  followed: History;
  /** Rows that were acknowledged because `b` has them, too. */
  acknowledged: number;
  isPromoted: boolean;
  rowsOfNew: number;
}

/** Rates of the clocks of a, b and both controllers. */
const rates = { a: 0.99, b: 1.01, controllers: [1.01, 0.99] } as const;
/** Maximum time of an engine after its deadline: the keeper's poll interval, and the kill. */
const killedAfterMs = 500;

export function newPrimaryLeaseModel(): PrimaryLeaseModel {
  const stored: Stored = { revision: 1, primary: "a", isFenced: false };
  const controller = (): Controller => ({
    view: stored,
    viewMs: 0,
    reading: undefined,
    fencedMs: undefined,
    grantedMs: undefined,
    decided: undefined,
    hasLease: true,
    revokedRevision: 0,
    peerGrants: undefined,
    hasLeft: false,
    aloneMs: undefined,
    ordered: undefined,
    proven: undefined,
  });
  const lease = newPrimaryLease(0);
  createPrimaryLease(() => 0, lease).bindTo({ serviceId: "s", term: 1n });
  return {
    nowMs: 0,
    stored,
    controllers: [controller(), controller()],
    lease,
    requests: [],
    grants: [],
    extensions: [],
    deadlineMs: primaryLeaseMs,
    number: 0,
    isUp: true,
    isReplicaOnDisk: false,
    isLinked: true,
    isConnected: true,
    vote: undefined,
    silence: { latest: { received: "1:0", sinceMs: 0 } },
    written: 0,
    received: 0,
    history: { number: 1, rowsBefore: 0 },
    followed: { number: 1, rowsBefore: 0 },
    acknowledged: 0,
    isPromoted: false,
    rowsOfNew: 0,
  };
}

export const clockA = ({ nowMs }: PrimaryLeaseModel) => nowMs * rates.a;
export const clockB = ({ nowMs }: PrimaryLeaseModel) => nowMs * rates.b;
export const clockOf = ({ nowMs }: PrimaryLeaseModel, index: 0 | 1) => nowMs * rates.controllers[index];

/** The broken invariant; undefined while all hold. */
export function brokenInvariantOf(state: PrimaryLeaseModel): string | undefined {
  if (!state.isPromoted) return undefined;
  if (isWritable(state)) return "two writable primaries";
  return state.rowsOfNew < state.acknowledged ? "an acknowledged row is lost" : undefined;
}

export function isWritable(state: PrimaryLeaseModel): boolean {
  return state.isUp && clockA(state) < state.deadlineMs + killedAfterMs;
}

/** Copies the state; members that are always replaced, never changed, are shared with the copy. */
export function copyOf(state: PrimaryLeaseModel): PrimaryLeaseModel {
  const [first, second] = state.controllers;
  return {
    ...state,
    controllers: [{ ...first }, { ...second }],
    lease: { ...state.lease },
    requests: [...state.requests],
    grants: [...state.grants],
    extensions: [...state.extensions],
    silence: { ...state.silence },
    vote: state.vote && { ...state.vote },
  };
}
