import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { NotAsked } from "#fleet/not-asked.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { replicationOrWhy } from "./ask-replication.ts";
import { lagOf } from "./log-position.ts";

/** A replica that is further behind would have everybody wait for it while nobody takes writes. */
const mostLagBytes = 16n << 20n;

/** Can the replica become the primary in order now? False, too, when either does not answer. */
export async function isReady(
  service: ManagedServiceObject,
  nodeId: string,
  deps: { readonly fleet: Pick<Fleet, "run"> },
  signal: AbortSignal,
): Promise<boolean> {
  const [primary, replica] = await askBoth(service, nodeId, deps, signal);
  return typeof primary === "object" && typeof replica === "object" && isNear(primary, replica);
}

/** Throws NOT_POSSIBLE with the lag, or MACHINE_UNREACHABLE, unless the replica can become the primary in order now. */
export async function requireReady(
  service: ManagedServiceObject,
  nodeId: string,
  deps: { readonly fleet: Pick<Fleet, "run"> },
  signal: AbortSignal,
): Promise<void> {
  const answers = await askBoth(service, nodeId, deps, signal);
  const [primary, replica] = [answered("primary", answers[0]), answered("replica", answers[1])];
  if (isNear(primary, replica)) return;
  const lag = lagOf(primary, replica);
  const why = replica.streaming ? "" : " and is not connected to the primary";
  throw new HoldfastError("NOT_POSSIBLE", `The replica is ${lag} bytes behind${why}: data would be lost.`, {
    members: { lag_bytes: Number(lag) },
  });
}

type Answer = Awaited<ReturnType<typeof replicationOrWhy>>;

/** Throws MACHINE_UNREACHABLE, for a busy engine with what keeps it so. */
function answered(role: "primary" | "replica", answer: Answer): ReadReplicationResult {
  if (typeof answer === "object") return answer;
  const why = answer === undefined ? `The ${role} does not answer.` : `The ${role} is busy. ${answer}`;
  throw new HoldfastError("MACHINE_UNREACHABLE", why);
}

function askBoth(
  service: ManagedServiceObject,
  nodeId: string,
  deps: { readonly fleet: Pick<Fleet, "run"> },
  signal: AbortSignal,
) {
  const ask = (id: string) =>
    replicationOrWhy(service, id, deps, signal).catch((error: unknown) => {
      if (error instanceof NotAsked) return undefined;
      throw error;
    });
  return Promise.all([ask(service.status.primaryNodeId), ask(nodeId)]);
}

function isNear(primary: ReadReplicationResult, replica: ReadReplicationResult): boolean {
  const isSame = replica.timeline === primary.timeline && replica.history === primary.history;
  return replica.streaming && isSame && lagOf(primary, replica) <= mostLagBytes;
}
