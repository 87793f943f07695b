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
  service: ManagedServiceObject,
  nodeId: string,
  { fleet }: { readonly fleet: Pick<Fleet, "run"> },
  signal: AbortSignal,
): Promise<ReadReplicationResult | undefined> {
  const request = {
    ownerId: service.metadata.id,
    generation: service.spec.instanceGeneration,
    term: service.status.term,
    lane: "query",
    input: { case: "readReplication", value: { $typeName: "holdfast.agent.v1.ReadReplication" } },
    deadlineMs: askWithinMs,
  } as const;
  try {
    const { output } = await fleet.run(nodeId, request, askWithinMs, signal);
    return output.case === "readReplication" ? output.value : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof NotAsked) throw error;
    return undefined;
  }
}
