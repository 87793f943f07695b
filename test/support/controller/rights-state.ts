import type { ReplicationSilenceState } from "@holdfast/agent/primary-lease/replication-silence.ts";
import {
  createPrimaryLease,
  newPrimaryLease,
  type PrimaryLeaseState,
} from "@holdfast/agent/primary-lease/primary-lease.ts";
import { rightMs } from "@holdfast/common/right.ts";

/** What the store says of the service: `a` is its primary until another one is named. */
interface Stored {
  readonly revision: number;
  readonly primary: "a" | "b";
  readonly isFenced: boolean;
}

/** One controller: what it knows is as old as its last look. */
export interface Controller {
  known: Stored;
  /** By its own clock. */
  knownMs: number;
  /** A look that began; what it saw counts from its beginning. */
  looking: { readonly stored: Stored; readonly atMs: number } | undefined;
  /** When it saw the fence first, by its own clock. */
  fencedMs: number | undefined;
  grantedMs: number | undefined;
  /** What it decided and has not written yet. */
  decided: { readonly revision: number; readonly primary: "a" | "b" } | undefined;
  hasLease: boolean;
  /** It grants nothing more while it knows nothing newer than this. */
  revokedRevision: number;
  /** What the other one said when it was asked: for so long it has granted nothing. */
  told: { readonly revision: number; readonly ungrantedForMs: number } | undefined;
  /** It ended its lease itself, and was gone at once. */
  hasLeft: boolean;
  /** When this one saw that of the other, by its own clock. */
  aloneMs: number | undefined;
  /** Under what it knew it told the machine's host to end the machine, and what of that the host has said. */
  ordered: number | undefined;
  proven: number | undefined;
}

/** What the primary has written since a start of its engine. */
interface History {
  readonly number: number;
  /** Rows that there were before. */
  readonly begunAt: number;
}

/** Everything that is, as plain data. Times are of a clock that nobody has; each party's own runs a little faster or slower. */
export interface RightsState {
  nowMs: number;
  stored: Stored;
  controllers: [Controller, Controller];
  right: PrimaryLeaseState;
  /** What is on its way, and may come at any time or never. */
  requests: number[];
  grants: number[];
  extensions: { readonly number: number; readonly untilMs: number; readonly leftMs: number }[];
  /** The keeper's deadline, by the host's clock, and the highest number that it took. */
  deadlineMs: number;
  number: number;
  isUp: boolean;
  /** Its disk says that it is not the primary. */
  isTold: boolean;
  /** Between `a` and `b`. */
  isLinked: boolean;
  isConnected: boolean;
  /** A vote that began: `b` has received what was written for it, or not yet. */
  vote: { readonly number: number; readonly atMs: number; isReceived: boolean } | undefined;
  /** What b's agent saw of what was received, when it looked. */
  quiet: ReplicationSilenceState;
  written: number;
  received: number;
  /** Engines without timelines count positions anew from each start of the primary on. */
  history: History;
  /** Whose positions b has. */
  followed: History;
  /** Rows that were acknowledged because `b` has them, too. */
  acknowledged: number;
  isPromoted: boolean;
  rowsOfNew: number;
}

/** Rates of the clocks of a, b and both controllers. */
const rates = { a: 0.99, b: 1.01, controllers: [1.01, 0.99] } as const;
/** How long after its deadline an engine may be alive: the keeper's nap and its kill. */
const killedAfterMs = 500;

export function newRightsState(): RightsState {
  const stored: Stored = { revision: 1, primary: "a", isFenced: false };
  const controller = (): Controller => ({
    known: stored,
    knownMs: 0,
    looking: undefined,
    fencedMs: undefined,
    grantedMs: undefined,
    decided: undefined,
    hasLease: true,
    revokedRevision: 0,
    told: undefined,
    hasLeft: false,
    aloneMs: undefined,
    ordered: undefined,
    proven: undefined,
  });
  const right = newPrimaryLease(0);
  createPrimaryLease(() => 0, right).bindTo({ serviceId: "s", term: 1n });
  return {
    nowMs: 0,
    stored,
    controllers: [controller(), controller()],
    right,
    requests: [],
    grants: [],
    extensions: [],
    deadlineMs: rightMs,
    number: 0,
    isUp: true,
    isTold: false,
    isLinked: true,
    isConnected: true,
    vote: undefined,
    quiet: { latest: { received: "1:0", sinceMs: 0 } },
    written: 0,
    received: 0,
    history: { number: 1, begunAt: 0 },
    followed: { number: 1, begunAt: 0 },
    acknowledged: 0,
    isPromoted: false,
    rowsOfNew: 0,
  };
}

export const clockA = ({ nowMs }: RightsState) => nowMs * rates.a;
export const clockB = ({ nowMs }: RightsState) => nowMs * rates.b;
export const clockOf = ({ nowMs }: RightsState, index: 0 | 1) => nowMs * rates.controllers[index];

/** What must never be; undefined while all is well. */
export function wrongIn(state: RightsState): string | undefined {
  if (!state.isPromoted) return undefined;
  if (isWritable(state)) return "two writable primaries";
  return state.rowsOfNew < state.acknowledged ? "an acknowledged row is lost" : undefined;
}

export function isWritable(state: RightsState): boolean {
  return state.isUp && clockA(state) < state.deadlineMs + killedAfterMs;
}

/** What is replaced whole is shared. */
export function copyOf(state: RightsState): RightsState {
  const [first, second] = state.controllers;
  return {
    ...state,
    controllers: [{ ...first }, { ...second }],
    right: { ...state.right },
    requests: [...state.requests],
    grants: [...state.grants],
    extensions: [...state.extensions],
    quiet: { ...state.quiet },
    vote: state.vote && { ...state.vote },
  };
}
