import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { TaskNotSent } from "#fleet/task-not-sent.ts";
import type { ManagedServiceObject } from "../../../managed-service.ts";

const readTimeoutMs = 2_000;

/** Current replication state of a node; undefined if it does not respond in time, or if no controller can reach it. */
export async function tryReadReplication(
  ...args: Parameters<typeof readReplication>
): Promise<ReadReplicationResult | undefined> {
  try {
    return await readReplication(...args);
  } catch (error) {
    if (error instanceof TaskNotSent) return undefined;
    throw error;
  }
}

/**
 * Current replication state of a node; undefined if it does not respond in time. Throws TaskNotSent if no controller
 * can reach the node, because its silence proves nothing then.
 */
export async function readReplication(
  ...args: Parameters<typeof readReplicationOrReason>
): Promise<ReadReplicationResult | undefined> {
  const response = await readReplicationOrReason(...args);
  return typeof response === "string" ? undefined : response;
}

/**
 * Current replication state of a node; for a busy engine a sentence for users with the reason, undefined without a
 * response. Throws TaskNotSent if no controller can reach the node. `replacesPrimary`: the replica cancels work that
 * keeps it busy, because it may become the primary.
 */
export async function readReplicationOrReason(
  service: ManagedServiceObject,
  nodeId: string,
  { fleet }: { readonly fleet: Pick<Fleet, "run"> },
  signal: AbortSignal,
  { replacesPrimary = false }: { readonly replacesPrimary?: boolean } = {},
): Promise<ReadReplicationResult | string | undefined> {
  const request = {
    ownerId: service.metadata.id,
    generation: service.spec.instanceGeneration,
    term: service.status.term,
    lane: "query",
    input: { case: "readReplication", value: { $typeName: "holdfast.agent.v1.ReadReplication", replacesPrimary } },
    deadlineMs: readTimeoutMs,
  } as const;
  try {
    const { output, failure } = await fleet.run(nodeId, request, readTimeoutMs, signal);
    if (output.case === "readReplication") return output.value;
    return failure?.code === "engine_busy" ? failure.message : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof TaskNotSent) throw error;
    return undefined;
  }
}
