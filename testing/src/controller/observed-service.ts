import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { NodeSpec } from "@holdfast/controller/services/service/managed-service.ts";
import type {
  ObservedNode,
  ObservedService,
} from "@holdfast/controller/services/service/reconcile/observed-service.ts";
import { replicaNode } from "@holdfast/controller/services/service/member/new-replica.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { runningMachine } from "../machines/machine-object.ts";

/** Observation of an engine by its agent; absent fields have their defaults. */
export type Observation = Omit<MessageInitShape<typeof InstanceObservationSchema>, "$typeName" | "$unknown">;

/** A node whose machine runs and whose agent is connected and reported `reported`, with changes. */
export function observedNode(node: NodeSpec, reported: Observation, more: Partial<ObservedNode> = {}): ObservedNode {
  return {
    node,
    machine: runningMachine(node.id, {}),
    connected: true,
    isCurrent: true,
    instance: create(InstanceObservationSchema, reported),
    stoppedForDrain: false,
    silentHost: undefined,
    ...more,
  };
}

/** A service whose DNS names resolve to the right nodes. */
export function observedService(nodes: readonly ObservedNode[], more: Partial<ObservedService> = {}): ObservedService {
  return { nodes, names: "verified", isChanging: false, ...more };
}

/** A replica of the service of `runningService` that has the primary's data. */
export function replicaOf(id: string, number: number): NodeSpec {
  const { joining: _, ...node } = replicaNode({ id, hostname: "db.local", zone: "local", number });
  return node;
}
