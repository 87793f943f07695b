import { type FieldFault, HoldfastError } from "@holdfast/common/errors.ts";
import { engineProfileOf } from "../../../../engine/engine-profiles.ts";
import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec, ReplicationMode } from "../../../managed-service.ts";
import type { ObservedService } from "../../../reconcile/observed-service.ts";
import { isEstablished } from "../../members.ts";
import { syncStandbyTimeoutMs } from "../update-members.ts";
import { follows, isPrimary, standbysOf } from "../primary.ts";
import { unconfirmedStandbys } from "./proven-replicas.ts";

/** Replication mode of the service, `async` by default. */
export function replicationModeOf({
  replicationMode = "async",
}: Pick<ManagedServiceSpec, "replicationMode">): ReplicationMode {
  return replicationMode;
}

/**
 * The standbys of which one must confirm a commit before it is acknowledged. In `sync_strict` all standbys, connected
 * or not.
 */
export function syncStandbysOf(service: Pick<ManagedServiceObject, "spec" | "status">): NodeSpec[] {
  const { spec } = service;
  if (replicationModeOf(spec) === "async") return [];
  const standbys = standbysOf(service);
  return replicationModeOf(spec) === "sync_strict"
    ? standbys
    : standbys.filter(({ id }) => spec.syncStandbys?.includes(id));
}

/**
 * The service with its current synchronous standbys. In `sync` a standby is removed once its own agent has reported for
 * `syncStandbyTimeoutMs` that it does not follow. One whose agent reports nothing is removed once its absence was
 * announced: a controller that has just started has no reports yet. An announcement removes no standby that reports,
 * because it may be of the time before commits waited for the standby, whose connection ends when they begin to.
 */
export function withSyncStandbys(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject {
  const { spec, status } = service;
  const isPaused = spec.power === "off" || spec.primaryChange !== undefined || status.state !== "Running";
  if (replicationModeOf(spec) === "async" || isPaused || !primaryMayRun(service, observed)) return service;
  const isAnnounced = status.warnings?.["service.replication_degraded"]?.announced === true;
  const before = spec.syncStandbys ?? [];
  const desired = standbysOf(service).flatMap(({ id }) => {
    const node = observed.nodes.find((each) => each.node.id === id);
    if (node === undefined || replicationModeOf(spec) === "sync_strict" || follows(node)) return [id];
    const isAbsent =
      node.connected && node.isCurrent
        ? (node.disconnectedMs ?? syncStandbyTimeoutMs) >= syncStandbyTimeoutMs
        : isAnnounced;
    return before.includes(id) && !isAbsent ? [id] : [];
  });
  if (desired.join() === before.join()) return withConfirmedSync(service, observed);
  const instanceGeneration = spec.instanceGeneration + 1;
  const unconfirmedSyncGeneration = before.length === 0 ? instanceGeneration : spec.unconfirmedSyncGeneration;
  return { ...service, spec: { ...spec, syncStandbys: desired, unconfirmedSyncGeneration, instanceGeneration } };
}

/**
 * The service after its running primary has applied the settings by which commits wait for standbys again, and one of
 * these has everything that was committed until then.
 */
function withConfirmedSync(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject {
  if (!unconfirmedStandbys(service, observed).some(({ hasAllCommits }) => hasAllCommits === true)) return service;
  return { ...service, spec: { ...service.spec, unconfirmedSyncGeneration: undefined } };
}

/**
 * False if the primary's agent reports that the engine does not run. Its standbys are not removed then: no commit
 * waits, and without its standbys no replica could be named.
 */
function primaryMayRun(service: ManagedServiceObject, { nodes }: ObservedService): boolean {
  const primary = nodes.find(({ node }) => isPrimary(service, node));
  return primary?.connected !== true || !primary.isCurrent || primary.instance?.state === "running";
}

/** Throws NOT_SUPPORTED for an engine without synchronous replication. */
export function requireReplicationMode(databaseType: string, mode: ReplicationMode): void {
  if (mode === "async" || engineProfileOf(databaseType).replicas?.isSynchronous === true) return;
  throw new HoldfastError("NOT_SUPPORTED", `A service of ${databaseType} supports only replication mode async.`);
}

/**
 * The change of the service's replication mode. Throws NOT_SUPPORTED, and NOT_POSSIBLE without a replica to wait
 * for.
 */
export function replicationModeChange(
  service: ManagedServiceObject,
  mode: ReplicationMode,
): Partial<ManagedServiceSpec> {
  if (mode === replicationModeOf(service.spec)) return {};
  requireReplicationMode(service.spec.databaseType, mode);
  if (mode !== "async" && standbysOf(service).length === 0)
    throw new HoldfastError("NOT_POSSIBLE", `Replication in mode ${mode} needs a replica: add one first.`);
  return { replicationMode: mode, syncStandbys: [] };
}

/** Errors of the replication mode in a request for a new service. */
export function replicationModeFaults(mode: string | undefined, nodeCount: number | undefined): readonly FieldFault[] {
  if (mode === undefined || mode === "async" || (nodeCount ?? 1) > 1) return [];
  const field = "replication_mode";
  return [{ field, pointer: `/${field}`, code: "needs_replicas", detail: "needs a node_count of 2 or more" }];
}

/** Throws WRONG_STATE if commits would have no standby to wait for without the node. */
export function refuseLastStandby(service: ManagedServiceObject, node: NodeSpec): void {
  const remaining = standbysOf(service).filter(({ id }) => id !== node.id);
  if (replicationModeOf(service.spec) === "async" || remaining.length > 0 || !isEstablished(node)) return;
  throw new HoldfastError(
    "WRONG_STATE",
    "The node is the last synchronous standby. Add another replica first, or set replication_mode to async.",
  );
}
