import { setTimeout as sleep } from "node:timers/promises";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { TaskNotSent } from "#fleet/task-not-sent.ts";
import type { ManagedServiceObject } from "../../../managed-service.ts";
import { readReplicationOrReason } from "../replication/read-replication.ts";
import { isWithoutLag, type Lag, lagOf, positionsOf } from "../replication/log-position.ts";

/** Maximum lag of the successor: no node takes writes until it has replayed the remaining log. */
const maxLagBytes = 16n << 20n;
/**
 * Time in which the successor must have replayed what the primary had written before, for engines whose positions do
 * not count bytes: one transaction may take as long as it did on the primary, or longer.
 */
const replayWithinMs = 1_000;
/** Maximum time for which a requested switchover waits for a lagging successor, while the primary takes writes. */
const waitMs = 10_000;
const pollIntervalMs = 100;

type Deps = { readonly fleet: Pick<Fleet, "run"> };

/**
 * True if the replica can become the primary in a switchover now; false if the replica or the primary does not respond.
 */
export async function isReadyForSwitchover(
  service: ManagedServiceObject,
  nodeId: string,
  deps: Deps,
  signal: AbortSignal,
): Promise<boolean> {
  const [primary, replica] = await readBoth(service, nodeId, deps, signal);
  if (typeof primary !== "object" || typeof replica !== "object") return false;
  return (await lastState(service, { primary, replica, nodeId }, deps, signal)).isReady;
}

/**
 * Waits until the replica can become the primary in a switchover. Throws NOT_POSSIBLE with the lag if it cannot, or is
 * still behind after `waitMs`, and MACHINE_UNREACHABLE if a node does not respond.
 */
export async function requireReadyForSwitchover(
  service: ManagedServiceObject,
  nodeId: string,
  deps: Deps,
  signal: AbortSignal,
): Promise<void> {
  const until = performance.now() + waitMs;
  for (;;) {
    const responses = await readBoth(service, nodeId, deps, signal);
    const [primary, replica] = [requireResponse("primary", responses[0]), requireResponse("replica", responses[1])];
    const state = await lastState(service, { primary, replica, nodeId }, deps, signal);
    if (state.isReady) return;
    const { lag } = state;
    const canCatchUp = state.replica.streaming && isSameLog(primary, state.replica) && lag.order === "before";
    if (!canCatchUp || performance.now() > until) throw notReady(state, canCatchUp);
    await sleep(pollIntervalMs, undefined, { signal });
  }
}

interface ReplicaState {
  readonly replica: ReadReplicationResult;
  readonly lag: Lag;
  readonly isReady: boolean;
}

function notReady({ replica, lag }: ReplicaState, canCatchUp: boolean): HoldfastError {
  const unconnected = replica.streaming ? "" : " and is not connected to the primary";
  const consequence = canCatchUp ? "no node would take writes until it has caught up" : "data would be lost";
  return new HoldfastError("NOT_POSSIBLE", `The replica ${sentenceOf(lag)}${unconnected}: ${consequence}.`, {
    members: { lag_bytes: lag.bytes === undefined ? null : Number(lag.bytes) },
  });
}

/** The replica's state once it has replayed this position of the primary, or after the time limit for that. */
async function lastState(
  service: ManagedServiceObject,
  read: { readonly primary: ReadReplicationResult; readonly replica: ReadReplicationResult; readonly nodeId: string },
  deps: Deps,
  signal: AbortSignal,
): Promise<ReplicaState> {
  const { primary, nodeId } = read;
  const stateOf = (replica: ReadReplicationResult): ReplicaState => {
    const lag = lagOf(positionsOf(service), primary, replica);
    return { replica, lag, isReady: isCaughtUp(primary, replica, lag) };
  };
  let state = stateOf(read.replica);
  const until = performance.now() + replayWithinMs;
  while (!state.isReady && state.lag.bytes === undefined && performance.now() < until) {
    await sleep(pollIntervalMs, undefined, { signal });
    const next = await readReplicationOrReason(service, nodeId, deps, signal).catch(ignoreNotSent);
    if (typeof next !== "object") break;
    state = stateOf(next);
  }
  return state;
}

type Response = Awaited<ReturnType<typeof readReplicationOrReason>>;

/** Throws MACHINE_UNREACHABLE without a response; the detail has the reason of a busy engine. */
function requireResponse(role: "primary" | "replica", response: Response): ReadReplicationResult {
  if (typeof response === "object") return response;
  const detail = response === undefined ? `The ${role} does not respond.` : `The ${role} is busy. ${response}`;
  throw new HoldfastError("MACHINE_UNREACHABLE", detail);
}

function readBoth(service: ManagedServiceObject, nodeId: string, deps: Deps, signal: AbortSignal) {
  const read = (id: string) => readReplicationOrReason(service, id, deps, signal).catch(ignoreNotSent);
  return Promise.all([read(service.status.primaryNodeId), read(nodeId)]);
}

function ignoreNotSent(error: unknown): undefined {
  if (!(error instanceof TaskNotSent)) throw error;
}

type Log = Pick<ReadReplicationResult, "timeline" | "history">;

const isSameLog = (primary: Log, replica: Log): boolean =>
  replica.timeline === primary.timeline && replica.history === primary.history;

/** True if the replica follows this primary with little lag. */
export function isCaughtUp(primary: Log, replica: Log & Pick<ReadReplicationResult, "streaming">, lag: Lag): boolean {
  return replica.streaming && isSameLog(primary, replica) && isShort(lag);
}

function isShort(lag: Lag): boolean {
  if (lag.order === "diverged") return false;
  return lag.bytes === undefined ? isWithoutLag(lag) : lag.bytes <= maxLagBytes;
}

function sentenceOf({ order, bytes }: Lag): string {
  if (order === "diverged") return "has commits that the primary lacks";
  return bytes === undefined ? "is behind" : `is ${bytes} bytes behind`;
}
