import type { MessageInitShape } from "@bufbuild/protobuf";
import type { NodePositionSchema } from "@holdfast/proto/holdfast/admin/v1/failover_pb.ts";
import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { positionOf } from "./log-position.ts";
import { isPrimary } from "./members.ts";

type Told = Pick<ReadReplicationResult, "timeline" | "history" | "position">;

/** Pure: what each node has, and how much of it the chosen one lacks. `told`: by node, of those that answered. */
export function nodePositions(
  service: ManagedServiceObject,
  chosen: string,
  told: ReadonlyMap<string, Told>,
): MessageInitShape<typeof NodePositionSchema>[] {
  const own = told.get(chosen);
  return service.spec.nodes.map((node) => {
    const role = isPrimary(service, node) ? "primary" : "replica";
    const has = told.get(node.id);
    if (has === undefined) return { nodeId: node.id, role, answers: false };
    const { timeline, history, position } = has;
    // All data of another history go.
    const ahead = positionOf(position) - (own !== undefined && history === own.history ? positionOf(own.position) : 0n);
    return { nodeId: node.id, role, answers: true, timeline, position, lostBytes: ahead > 0n ? ahead : 0n };
  });
}
