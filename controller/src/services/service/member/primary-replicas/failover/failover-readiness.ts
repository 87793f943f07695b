import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { TaskNotSent } from "#fleet/task-not-sent.ts";
import type { ManagedServiceObject } from "../../../managed-service.ts";
import { readReplicationOrReason } from "../replication/read-replication.ts";
import { isWithoutLag, type Lag, lagOf, positionsOf } from "../replication/log-position.ts";

/** Maximum lag of the successor: no node takes writes until it has replayed the remaining log. */
const maxLagBytes = 16n << 20n;
/** Maximum age of the last replayed commit, for engines whose positions do not count bytes. */
const maxReplayAgeSeconds = 5;

/**
 * True if the replica can become the primary in a switchover now; false if the replica or the primary does not respond.
 */
export async function isReadyForSwitchover(
  service: ManagedServiceObject,
  nodeId: string,
  deps: { readonly fleet: Pick<Fleet, "run"> },
  signal: AbortSignal,
): Promise<boolean> {
  const [primary, replica] = await readBoth(service, nodeId, deps, signal);
  return (
    typeof primary === "object" &&
    typeof replica === "object" &&
    isCaughtUp(primary, replica, lagIn(service, primary, replica))
  );
}

/**
 * Throws NOT_POSSIBLE with the lag, or MACHINE_UNREACHABLE, unless the replica can become the primary in a switchover
 * now.
 */
export async function requireReadyForSwitchover(
  service: ManagedServiceObject,
  nodeId: string,
  deps: { readonly fleet: Pick<Fleet, "run"> },
  signal: AbortSignal,
): Promise<void> {
  const responses = await readBoth(service, nodeId, deps, signal);
  const [primary, replica] = [requireResponse("primary", responses[0]), requireResponse("replica", responses[1])];
  const lag = lagIn(service, primary, replica);
  if (isCaughtUp(primary, replica, lag)) return;
  const why = replica.streaming ? "" : " and is not connected to the primary";
  throw new HoldfastError("NOT_POSSIBLE", `The replica ${sentenceOf(lag)}${why}: data would be lost.`, {
    members: { lag_bytes: lag.bytes === undefined ? null : Number(lag.bytes) },
  });
}

type Response = Awaited<ReturnType<typeof readReplicationOrReason>>;

/** Throws MACHINE_UNREACHABLE without a response; the detail has the reason of a busy engine. */
function requireResponse(role: "primary" | "replica", response: Response): ReadReplicationResult {
  if (typeof response === "object") return response;
  const detail = response === undefined ? `The ${role} does not respond.` : `The ${role} is busy. ${response}`;
  throw new HoldfastError("MACHINE_UNREACHABLE", detail);
}

function readBoth(
  service: ManagedServiceObject,
  nodeId: string,
  deps: { readonly fleet: Pick<Fleet, "run"> },
  signal: AbortSignal,
) {
  const read = (id: string) =>
    readReplicationOrReason(service, id, deps, signal).catch((error: unknown) => {
      if (error instanceof TaskNotSent) return undefined;
      throw error;
    });
  return Promise.all([read(service.status.primaryNodeId), read(nodeId)]);
}

function lagIn(service: ManagedServiceObject, primary: ReadReplicationResult, replica: ReadReplicationResult): Lag {
  return lagOf(positionsOf(service), primary, replica);
}

/** True if the replica follows this primary with little lag. */
export function isCaughtUp(
  primary: Pick<ReadReplicationResult, "timeline" | "history">,
  replica: Pick<ReadReplicationResult, "timeline" | "history" | "streaming" | "replayAgeSeconds">,
  lag: Lag,
): boolean {
  const isSame = replica.timeline === primary.timeline && replica.history === primary.history;
  return replica.streaming && isSame && isShort(lag, replica.replayAgeSeconds);
}

function isShort(lag: Lag, replayAgeSeconds: number): boolean {
  if (lag.order === "diverged") return false;
  if (lag.bytes !== undefined) return lag.bytes <= maxLagBytes;
  return isWithoutLag(lag) || replayAgeSeconds <= maxReplayAgeSeconds;
}

function sentenceOf({ order, bytes }: Lag): string {
  if (order === "diverged") return "has commits that the primary lacks";
  return bytes === undefined ? "is behind" : `is ${bytes} bytes behind`;
}
