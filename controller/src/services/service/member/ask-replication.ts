import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { NotAsked } from "#fleet/not-asked.ts";
import type { ManagedServiceObject } from "../managed-service.ts";

const askWithinMs = 2_000;

/** What a node says of its replication now; undefined when it does not answer in time, or could not be asked. */
export async function askReplication(
  ...asked: Parameters<typeof replicationOf>
): Promise<ReadReplicationResult | undefined> {
  try {
    return await replicationOf(...asked);
  } catch (error) {
    if (error instanceof NotAsked) return undefined;
    throw error;
  }
}

/** The same; throws NotAsked when no controller could ask the node, whose silence is none then. */
export async function replicationOf(
  ...asked: Parameters<typeof replicationOrWhy>
): Promise<ReadReplicationResult | undefined> {
  const told = await replicationOrWhy(...asked);
  return typeof told === "string" ? undefined : told;
}

/**
 * The same, or of a node whose engine is busy, with what and until when, in words for users. `replacesPrimary`: a replica ends what keeps it
 * busy, as it may be the next primary.
 */
export async function replicationOrWhy(
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
    deadlineMs: askWithinMs,
  } as const;
  try {
    const { output, failure } = await fleet.run(nodeId, request, askWithinMs, signal);
    if (output.case === "readReplication") return output.value;
    return failure?.code === "engine_busy" ? failure.message : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof NotAsked) throw error;
    return undefined;
  }
}
