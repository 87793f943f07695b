import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { type HostObject, acceptsMachines } from "#fleet/host/host.ts";
import { again, type ReconcileOutcome } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { operationKind, type OperationObject, operationSubject, subjectKey } from "#operation/operation.ts";
import { managedServiceKind, type ManagedServiceObject, type NodeSpec, serviceSubject } from "../managed-service.ts";
import type { ObservedService } from "../reconcile/observed-service.ts";
import { beginMove, nodeToMove } from "./move-node.ts";
import { serviceOperations } from "../service-operations.ts";

export interface MoveDeps {
  readonly begin: () => UnitOfWork;
  readonly services: Pick<Collection<ManagedServiceObject>, "untilRevision">;
  readonly operations: Pick<Collection<OperationObject>, "by" | "untilRevision">;
  readonly hosts: Pick<Collection<HostObject>, "get" | "values">;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Delay after a failed move. */
const retryDelayMs = 10 * 60_000;
/** Interval of checks for a new target host. */
const hostCheckIntervalMs = 60_000;

/**
 * Starts the move of a node from a drained or lost host, in one transaction. Returns `written` if it did; otherwise the
 * milliseconds until the next check, or null if no node must move.
 */
export async function startDueMove(
  service: Stored<ManagedServiceObject>,
  observe: () => ObservedService,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<
  { readonly written: ReconcileOutcome } | { readonly written: undefined; readonly recheckInMs: number | null }
> {
  const { object } = service;
  if (object.spec.nodes.length === 1) return { written: undefined, recheckInMs: null };
  const observed = observe();
  const node = nodeToMove(object, observed);
  if (node === undefined) return { written: undefined, recheckInMs: null };
  const now = deps.clock.now();
  if (now - lastFailure(object, deps) < retryDelayMs || !hasTargetHost(node, observed, deps))
    return { written: undefined, recheckInMs: hostCheckIntervalMs };
  const { after, operation } = beginMove(object, node, { nodeId: deps.newId(), operationId: deps.newId(), now });
  deps.log.info("node move started", { service: object.metadata.id, node: node.id });
  const unit = deps.begin();
  unit.create(operationKind, operation);
  unit.update(managedServiceKind, service, after);
  const revision = await unit.commit(signal);
  await Promise.all([deps.services.untilRevision(revision, 1_000), deps.operations.untilRevision(revision, 1_000)]);
  return { written: again(0, "move") };
}

/** Time of the last failed move, in milliseconds since 1970; 0 if none failed. */
function lastFailure({ metadata }: ManagedServiceObject, { operations }: MoveDeps): number {
  const ended = operations
    .by(operationSubject, subjectKey(serviceSubject(metadata.id)))
    .map(({ object }) => object)
    .filter((operation) => serviceOperations.move_node.is(operation) && operation.status.state === "failed");
  return Math.max(0, ...ended.map(({ status }) => status.finishedAt ?? 0));
}

/** True if another host in the node's zone accepts machines. Placement checks its capacity later. */
function hasTargetHost({ id, zone }: NodeSpec, { nodes }: ObservedService, { hosts }: MoveDeps): boolean {
  const hostId = nodes.find(({ node }) => node.id === id)?.machine?.spec.hostId;
  return Iterator.from(hosts.values()).some(
    ({ object }) =>
      object.metadata.id !== hostId &&
      object.spec.zone === zone &&
      acceptsMachines(object) &&
      object.status.state === "ready",
  );
}
