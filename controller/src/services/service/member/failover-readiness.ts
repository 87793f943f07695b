import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { TaskNotSent } from "#fleet/task-not-sent.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { readReplicationOrReason } from "./read-replication.ts";
import { lagOf } from "./log-position.ts";

/** Writes stop until the new primary has replayed everything, so its lag is limited. */
const maxLagBytes = 16n << 20n;

/** True if the replica can become the primary in a switchover now; false if it or the primary does not answer. */
export async function isReadyForSwitchover(
  service: ManagedServiceObject,
  nodeId: string,
  deps: { readonly fleet: Pick<Fleet, "run"> },
  signal: AbortSignal,
): Promise<boolean> {
  const [primary, replica] = await readBoth(service, nodeId, deps, signal);
  return typeof primary === "object" && typeof replica === "object" && isCaughtUp(primary, replica);
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
  if (isCaughtUp(primary, replica)) return;
  const lag = lagOf(primary, replica);
  const why = replica.streaming ? "" : " and is not connected to the primary";
  throw new HoldfastError("NOT_POSSIBLE", `The replica is ${lag} bytes behind${why}: data would be lost.`, {
    members: { lag_bytes: Number(lag) },
  });
}

type Response = Awaited<ReturnType<typeof readReplicationOrReason>>;

/** Throws MACHINE_UNREACHABLE if there is no response; for a busy engine with the reason. */
function requireResponse(role: "primary" | "replica", response: Response): ReadReplicationResult {
  if (typeof response === "object") return response;
  const why = response === undefined ? `The ${role} does not answer.` : `The ${role} is busy. ${response}`;
  throw new HoldfastError("MACHINE_UNREACHABLE", why);
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

function isCaughtUp(primary: ReadReplicationResult, replica: ReadReplicationResult): boolean {
  const isSame = replica.timeline === primary.timeline && replica.history === primary.history;
  return replica.streaming && isSame && lagOf(primary, replica) <= maxLagBytes;
}
