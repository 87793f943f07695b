import { createPrimaryLease, newPrimaryLease } from "@holdfast/agent/primary-lease/primary-lease.ts";
import { createReplicationSilence } from "@holdfast/agent/primary-lease/replication-silence.ts";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import { bytePositions } from "@holdfast/controller/services/engine/log-positions.ts";
import { cacheMaxAgeMs, leaseRefusalOf } from "@holdfast/controller/fleet/session/primary-leases.ts";
import {
  type Candidate,
  fenceVerdict,
  leaseExpiredAfterMs,
  type LeaseState,
} from "@holdfast/controller/services/service/member/primary-replicas/failover/fence-verdict.ts";
import type { MemberState } from "@holdfast/controller/services/service/member/primary-replicas/primary-change-plan.ts";
import {
  clockA,
  clockB,
  clockOf,
  type Controller,
  copyOf,
  isWritable,
  type PrimaryLeaseModel,
} from "./primary-lease-state.ts";

const positions = bytePositions(BigInt);

/** Faults of an incorrect protocol: the explorer has to find each. */
export type Bug =
  | "ackOnly"
  | "forgetsDisconnected"
  | "lateAnswers"
  | "timeOnTheWay"
  | "noWait"
  | "noVotes"
  | "oldKnowledge"
  | "noMargin"
  | "noHistory"
  | "earlyOrder"
  | "deadOrder";

// biome-ignore format: in groups
export const actions = [
  "wait 1", "wait 3",
  "ask", "take 0", "take 1", "grant", "late grant", "extend",
  "vote", "receive", "voted",
  "look 0", "look 1", "looked 0", "looked 1",
  "fence 0", "fence 1", "decide 0", "decide 1", "write 0", "write 1",
  "link", "connect", "lease 0", "lease 1", "acknowledge 0", "acknowledge 1", "leave 0", "leave 1",
  "order 0", "order 1", "ordered 0", "ordered 1",
  "kill", "start", "restart", "end", "row",
] as const;
type Step = (typeof actions)[number];

/** Sequences of steps that succeed together as one step. */
const composites = {
  "know 0": ["look 0", "looked 0"],
  "know 1": ["look 1", "looked 1"],
  "renew 0": ["ask", "take 0", "grant", "extend"],
  "renew 1": ["ask", "take 1", "grant", "extend"],
  confirm: ["vote", "receive", "voted", "extend"],
  "agree 0": ["acknowledge 0", "decide 0", "write 0"],
  "agree 1": ["acknowledge 1", "decide 1", "write 1"],
  "replace 0": ["decide 0", "write 0"],
  "replace 1": ["decide 1", "write 1"],
  "end 0": ["acknowledge 0", "order 0", "ordered 0"],
  "end 1": ["acknowledge 1", "order 1", "ordered 1"],
} as const satisfies Record<string, readonly Step[]>;

export const compositeActions = Object.keys(composites) as (keyof typeof composites)[];
export type Action = Step | keyof typeof composites;

/** Applies the action to a copy; undefined where it is not possible. */
export function nextState(before: PrimaryLeaseModel, action: Action, bug?: Bug): PrimaryLeaseModel | undefined {
  if (isComposite(action)) {
    return composites[action].reduce<PrimaryLeaseModel | undefined>(
      (state, step) => state && nextState(state, step, bug),
      before,
    );
  }
  const state = copyOf(before);
  const done = act(state, action, bug);
  if (!done) return undefined;
  if (!isWritable(state)) state.isUp = false;
  return state;
}

function isComposite(action: Action): action is keyof typeof composites {
  return action in composites;
}

function act(state: PrimaryLeaseModel, action: Step, bug: Bug | undefined): boolean {
  const primaryLease = createPrimaryLease(() => clockA(state), state.lease);
  switch (action) {
    case "wait 1":
    case "wait 3":
      state.nowMs += Number(action.slice(-1)) * 1_000;
      silenceOf(state).record(receivedOf(state, bug));
      return true;
    case "ask":
      state.requests = [...state.requests.slice(-1), primaryLease.nextNumber(state.number)];
      return true;
    case "grant":
    case "late grant": {
      const number = action === "grant" ? state.grants.pop() : state.grants.shift();
      if (number === undefined) return false;
      // The bug counts from the response, not from the request.
      const untilMs = bug === "lateAnswers" ? clockA(state) + primaryLeaseMs : primaryLease.grantedUntil(number);
      if (untilMs !== undefined) extendBy(state, number, untilMs);
      return true;
    }
    case "extend": {
      const extension = state.extensions.shift();
      // Without an engine there is no lease to extend: an engine that starts later starts with this lease.
      if (extension !== undefined && !state.isUp && !state.isReplicaOnDisk) primaryLease.extendedTo(extension.untilMs);
      if (extension === undefined || !state.isUp || extension.number < state.number) return extension !== undefined;
      state.number = extension.number;
      state.deadlineMs = bug === "timeOnTheWay" ? clockA(state) + extension.leftMs : extension.untilMs;
      primaryLease.extendedTo(state.deadlineMs);
      return true;
    }
    case "vote":
      if (!state.isUp) return false;
      state.written += 1;
      state.vote = { number: primaryLease.nextNumber(state.number), atMs: clockA(state), isReceived: false };
      return true;
    case "receive":
      if (!state.isLinked || !state.isUp || state.isPromoted) return false;
      if (state.received === state.written && state.followed === state.history) return false;
      receive(state);
      return true;
    case "voted": {
      const { vote } = state;
      if (vote === undefined || !vote.isReceived || !state.isUp) return false;
      state.vote = undefined;
      extendBy(state, vote.number, vote.atMs + primaryLeaseMs);
      return true;
    }
    case "row":
      if (!isWritable(state)) return false;
      state.written += 1;
      if (state.isLinked && !state.isPromoted) {
        receive(state);
        state.acknowledged = state.written;
      }
      return true;
    case "link":
      state.isLinked = !state.isLinked;
      return true;
    case "connect":
      state.isConnected = !state.isConnected;
      return true;
    case "kill":
      state.isUp = false;
      return true;
    case "start":
      if (state.isUp || state.lease.untilMs <= clockA(state)) return false;
      state.isUp = true;
      state.deadlineMs = state.lease.untilMs;
      return true;
    case "restart":
      // Its lease is extended; a vote in progress refers to an earlier write, which no replica receives any more.
      if (!isWritable(state) || state.lease.untilMs <= clockA(state)) return false;
      state.history = { number: state.history.number + 1, rowsBefore: state.written };
      state.vote = undefined;
      return true;
    case "end":
      // The agent learns of the fence and reports that nothing of the engine remains.
      if (!state.stored.isFenced || !state.isConnected || !state.isUp) return false;
      Object.assign(state, { isUp: false, isReplicaOnDisk: true });
      state.lease.untilMs = 0;
      return true;
    default:
      return control(state, action, bug);
  }
}

/** Actions of a controller. */
function control(state: PrimaryLeaseModel, action: Step, bug: Bug | undefined): boolean {
  const [kind, which] = action.split(" ");
  const index = which === "1" ? 1 : 0;
  const controller = state.controllers[index];
  switch (kind) {
    case "take": {
      const number = state.requests.pop();
      if (number === undefined || !state.isConnected) return false;
      const { primary, isFenced } = controller.view;
      const verifiedAgoMs = bug === "oldKnowledge" ? 0 : clockOf(state, index) - controller.viewMs;
      const isRevoked = controller.view.revision <= controller.revokedRevision;
      const refusal = primary === "a" && !isFenced && !isRevoked ? undefined : "another one";
      if (leaseRefusalOf({ hasLease: controller.hasLease, verifiedAgoMs, refusal }) === undefined) {
        controller.grantedMs = clockOf(state, index);
        state.grants = [...state.grants.slice(-1), number];
      }
      return true;
    }
    case "look":
      controller.reading = { stored: state.stored, atMs: clockOf(state, index) };
      return true;
    case "looked": {
      if (controller.reading === undefined) return false;
      if (controller.reading.stored.revision >= controller.view.revision) controller.view = controller.reading.stored;
      controller.viewMs = Math.max(controller.viewMs, controller.reading.atMs);
      controller.reading = undefined;
      if (controller.view.isFenced) controller.fencedMs ??= clockOf(state, index);
      return true;
    }
    case "fence": {
      const { view } = controller;
      if (controller.hasLeft) return false;
      if (view.isFenced || view.primary !== "a" || view.revision !== state.stored.revision) return false;
      state.stored = { ...view, revision: view.revision + 1, isFenced: true };
      controller.view = state.stored;
      controller.fencedMs = clockOf(state, index);
      return true;
    }
    case "decide":
      return decide(state, index, bug);
    case "write": {
      const { decided } = controller;
      controller.decided = undefined;
      if (decided === undefined || decided.revision !== state.stored.revision) return false;
      state.stored = { revision: decided.revision + 1, primary: decided.primary, isFenced: false };
      // The new primary accepts writes immediately: the fastest behavior is the least safe one.
      if (decided.primary === "b") Object.assign(state, { isPromoted: true, rowsOfNew: state.received });
      return true;
    }
    case "acknowledge": {
      // The other controller gets the fence from this controller's response, however late it is.
      const other = state.controllers[1 - index] as Controller;
      if (!controller.view.isFenced || other.hasLeft) return false;
      const { revision } = controller.view;
      if (bug !== "ackOnly") other.revokedRevision = Math.max(other.revokedRevision, revision);
      controller.peerGrants = {
        revision,
        ungrantedForMs: clockOf(state, index === 0 ? 1 : 0) - (other.grantedMs ?? 0),
      };
      return true;
    }
    case "leave": {
      if (controller.hasLeft || state.controllers[1 - index]?.hasLeft === true) return false;
      Object.assign(controller, { hasLeft: true, hasLease: false });
      const other = index === 0 ? 1 : 0;
      state.controllers[other].aloneMs = bug === "forgetsDisconnected" ? 0 : clockOf(state, other);
      return true;
    }
    case "order":
      // Anything started of it since is ended, too, with the state of its agent.
      if (!controller.view.isFenced || controller.hasLeft) return false;
      if (bug !== "earlyOrder" && ungrantedFor(controller, clockOf(state, index)) === undefined) return false;
      controller.ordered = controller.view.revision;
      if (bug !== "deadOrder") endMachine(state);
      return true;
    case "ordered":
      if (controller.ordered === undefined) return false;
      controller.proven = controller.ordered;
      return true;
    case "lease":
      if (controller.hasLeft) return false;
      controller.hasLease = !controller.hasLease;
      return true;
    default:
      return false;
  }
}

/** Ends the machine: only its disk remains, and messages in flight to it are lost. */
function endMachine(state: PrimaryLeaseModel): void {
  state.isUp = false;
  state.vote = undefined;
  state.lease = newPrimaryLease(clockA(state));
  createPrimaryLease(() => clockA(state), state.lease).bindTo({ serviceId: "s", term: 1n });
  Object.assign(state, { requests: [], grants: [], extensions: [], deadlineMs: 0, number: 0 });
}

function receive(state: PrimaryLeaseModel): void {
  state.received = state.written;
  state.followed = state.history;
  if (state.vote !== undefined) state.vote.isReceived = true;
}

function silenceOf(state: PrimaryLeaseModel) {
  return createReplicationSilence(() => clockB(state), state.silence);
}

/** The bug mistakes a position of one history for the same position of another. */
function receivedOf({ received, followed }: PrimaryLeaseModel, bug: Bug | undefined): string {
  const position = received - followed.rowsBefore;
  return bug === "noHistory" ? `${position}` : `${followed.number}:${position}`;
}

function extendBy(state: PrimaryLeaseModel, number: number, untilMs: number): void {
  state.extensions = [...state.extensions.slice(-1), { number, untilMs, leftMs: untilMs - clockA(state) }];
}

/**
 * Time in ms for which neither controller has granted a lease, as far as this controller can tell; undefined unless
 * the other one has responded or is stopped.
 */
function ungrantedFor({ view, peerGrants, grantedMs = 0, aloneMs }: Controller, now: number): number | undefined {
  if (aloneMs !== undefined) return Math.min(now - grantedMs, now - aloneMs);
  return peerGrants?.revision === view.revision ? Math.min(now - grantedMs, peerGrants.ungrantedForMs) : undefined;
}

function decide(state: PrimaryLeaseModel, index: 0 | 1, bug: Bug | undefined): boolean {
  const controller = state.controllers[index];
  if (!controller.view.isFenced || controller.fencedMs === undefined || controller.hasLeft) return false;
  const now = clockOf(state, index);
  const from: MemberState = {
    isConnected: state.isConnected,
    hasNewestSettings: state.isConnected && !state.isUp && state.isReplicaOnDisk,
    engine: state.isUp ? "unknown" : "cutOff",
  };
  const waitedMs = now - controller.fencedMs;
  const leaseState: LeaseState = {
    revokedForMs:
      bug === "noWait" ? waitedMs + cacheMaxAgeMs + leaseExpiredAfterMs : waitedMs + (bug === "noMargin" ? 5_000 : 0),
    ungrantedForMs: ungrantedFor(controller, now),
    isProven: controller.proven === controller.view.revision,
  };
  const candidate: Candidate = {
    nodeId: "b",
    timeline: 1,
    position: `${state.received}`,
    unchangedMs: bug === "noVotes" ? leaseExpiredAfterMs : silenceOf(state).unchangedMs(receivedOf(state, bug)),
    streaming: state.isLinked && state.isUp,
  };
  const verdict = fenceVerdict(from, leaseState, state.isPromoted ? [] : [candidate], positions);
  if (verdict.kind === "wait") return false;
  controller.decided = { revision: controller.view.revision, primary: verdict.kind === "name" ? "b" : "a" };
  return true;
}
