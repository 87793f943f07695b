import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { engineFormOf } from "../../engine/engine-forms.ts";
import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec, ReplicationMode } from "../managed-service.ts";
import type { ObservedService } from "../observed-service.ts";
import { isStaying, standbysOf } from "./members.ts";
import { follows } from "./proven-replicas.ts";
import { leavesAfterMs } from "./settle-members.ts";

export function modeOf({ replicationMode = "async" }: Pick<ManagedServiceSpec, "replicationMode">): ReplicationMode {
  return replicationMode;
}

/** Pure: the replicas of which one must have a commit before it is acknowledged; all of them in `sync_strict`, there or not. */
export function syncStandbysOf(service: Pick<ManagedServiceObject, "spec" | "status">): NodeSpec[] {
  const { spec } = service;
  if (modeOf(spec) === "async") return [];
  const standbys = standbysOf(service);
  return modeOf(spec) === "sync_strict" ? standbys : standbys.filter(({ id }) => spec.syncStandbys?.includes(id));
}

/**
 * Pure: the service with the replicas that follow now. In `sync` one leaves when it has said itself for a moment that it does not
 * follow, or once that has been so for long enough to be told of: a controller that has just begun has heard of nobody.
 */
export function withSyncStandbys(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject {
  const { spec, status } = service;
  const rests = spec.power === "off" || spec.succession !== undefined || status.state !== "Running";
  if (modeOf(spec) === "async" || rests) return service;
  const isTold = status.warnings?.["service.replication_degraded"]?.told === true;
  const before = spec.syncStandbys ?? [];
  const wanted = standbysOf(service).flatMap(({ id }) => {
    const node = observed.nodes.find((each) => each.node.id === id);
    if (node === undefined || modeOf(spec) === "sync_strict" || follows(node)) return [id];
    const saysSo = node.connected && node.isCurrent && (node.awayMs ?? leavesAfterMs) >= leavesAfterMs;
    return before.includes(id) && !saysSo && !isTold ? [id] : [];
  });
  if (wanted.join() === before.join()) return service;
  const instanceGeneration = spec.instanceGeneration + 1;
  return { ...service, spec: { ...spec, syncStandbys: wanted, instanceGeneration } };
}

/** Throws NOT_SUPPORTED for an engine whose commits wait for nobody. */
export function requireMode(databaseType: string, mode: ReplicationMode): void {
  if (mode === "async" || engineFormOf(databaseType).replicas?.isSynchronous === true) return;
  throw new HoldfastError("NOT_SUPPORTED", `A service of ${databaseType} replicates in mode async only.`);
}

/** Pure: the service in another mode. Throws NOT_SUPPORTED, and NOT_POSSIBLE without a replica to wait for. */
export function changedMode(service: ManagedServiceObject, mode: ReplicationMode): Partial<ManagedServiceSpec> {
  if (mode === modeOf(service.spec)) return {};
  requireMode(service.spec.databaseType, mode);
  if (mode !== "async" && standbysOf(service).length === 0)
    throw new HoldfastError("NOT_POSSIBLE", `Replication in mode ${mode} needs a replica: add one first.`);
  return { replicationMode: mode, syncStandbys: [] };
}

/** Pure: what is wrong with the mode of a service that is to be made. */
export function newModeFaults(mode: string | undefined, nodeCount: number | undefined): readonly FieldFault[] {
  if (mode === undefined || mode === "async" || (nodeCount ?? 1) > 1) return [];
  const field = "replication_mode";
  return [{ field, pointer: `/${field}`, code: "needs_replicas", detail: "needs a node_count of 2 or more" }];
}

/** Throws WRONG_STATE when commits would have nobody to wait for without the node. */
export function refuseLastStandby(service: ManagedServiceObject, node: NodeSpec): void {
  const others = standbysOf(service).filter(({ id }) => id !== node.id);
  if (modeOf(service.spec) === "async" || others.length > 0 || !isStaying(node)) return;
  throw new HoldfastError(
    "WRONG_STATE",
    "The node is the last synchronous standby. Add another replica first, or set replication_mode to async.",
  );
}
