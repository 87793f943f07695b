import { versionNumber } from "#catalog/version-number.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ImageChange, Replacement } from "../../maintenance/maintenance-work.ts";
import { type OperationObject, rollingBack } from "#operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { isEstablished, nextNumberOf } from "../member/members.ts";
import { replicaNode } from "../member/new-replica.ts";
import { rolloutFault } from "../member/rollout-fault.ts";
import type { ObservedService } from "../reconcile/observed-service.ts";
import type { Fault } from "../procedure/procedure.ts";
import { maintenanceWorkOf, replacementOf } from "../service-operations.ts";
import { standbysOf } from "../member/primary-replicas/primary.ts";
import { awaitsRollout, isRolledOut, isSettled, unsettledInRollout, withoutPin } from "../member/rollout-state.ts";
import { isLeader } from "../member/member-roles.ts";

/**
 * True if another image can be applied by a rolling update: one node after another, replicas first, with clients
 * admitted.
 */
export function canRollImages(service: ManagedServiceObject): boolean {
  const { state, nodes } = service.status;
  const runs = (id: string) => nodes.some((node) => node.id === id && node.status === "Running");
  return state === "Running" && standbysOf(service).some(({ id }) => runs(id));
}

/** The nodes, each pinned to its current image until the rolling update reaches it. */
export function withPinnedImages(
  { spec }: ManagedServiceObject,
  image: ImageChange | null,
  guestKernel: ImageChange | undefined,
): NodeSpec[] {
  const kernel = guestKernel?.from ?? spec.guestKernel;
  const { machineStarts } = spec;
  const pinned = {
    image: image?.from ?? spec.image,
    version: spec.version,
    ...(kernel !== undefined && { guestKernel: kernel }),
    ...(machineStarts !== undefined && { machineStarts }),
  };
  return spec.nodes.map((node) => (node.joining === true ? node : { ...node, pinned }));
}

/**
 * The nodes of a service whose primary's data are upgraded: replicas are pinned to their image and data until the
 * primary is upgraded.
 */
export function withPinnedReplicas(service: ManagedServiceObject, image: ImageChange | null): NodeSpec[] {
  const pinned = withPinnedImages(service, image, undefined);
  return pinned.map((node) => (isLeader(service, node) ? withoutPin(node) : node));
}

/** Reason why the image fails on an updated node; undefined while it may succeed, and during a rollback. */
export function imageRolloutFault(
  observed: ObservedService,
  operation: OperationObject,
  now: number,
  service: ManagedServiceObject,
): Fault | undefined {
  if (operation.status.rollback !== undefined) return undefined;
  const fault = rolloutFault(observed, operation, now, service);
  if (fault !== undefined) return fault;
  const toVersion = replacementOf(operation)?.image?.toVersion ?? "";
  const acceptsOrder = maintenanceWorkOf(operation)?.acceptsTextOrder === true;
  for (const seen of observed.nodes) {
    const { node, instance } = seen;
    if (node.joining === true || !isRolledOut(service, node) || !isSettled(service, seen)) continue;
    const order = instance?.checks.find(({ name, status }) => name === "collation" && status !== "healthy");
    if (order !== undefined && !acceptsOrder)
      return { code: "text_order", message: `${node.hostname}: ${order.reason}` };
    const version = versionNumber(instance?.engineVersion ?? "");
    if (toVersion !== "" && version !== toVersion)
      return { code: "not_healthy", message: `${node.hostname} runs ${version} in place of ${toVersion}.` };
  }
  return undefined;
}

/**
 * Rolls a rolling update back. While the primary has the old image, every updated node gets the old image again, one
 * after another, and a node that did not start is replaced by a new copy. Once the primary has the new image, only the
 * failed node is replaced, and the update continues.
 */
export function rollBackImages(
  service: ManagedServiceObject,
  operation: OperationObject,
  fault: Fault,
  now: number,
  observed: ObservedService,
): { after: ManagedServiceObject; operation: OperationObject } {
  const change = replacementOf(operation);
  if (change === undefined) return { after: service, operation };
  const { metadata, spec } = service;
  const isOpen = spec.nodes.some((node) => isLeader(service, node) && awaitsRollout(spec, node));
  const [failedNode] = unsettledInRollout(service, observed)
    .map(({ node }) => node)
    .filter((node) => !isLeader(service, node));
  const number = nextNumberOf(spec);
  const changed = spec.nodes.map((node) => {
    if (node.id === failedNode?.id) return { ...withoutPin(node), leaving: true as const };
    return isOpen ? pinnedToNewImage(node, service) : node;
  });
  // An operation replaces at most one node, so the new node gets the operation's id.
  const { id: replacementId } = operation.metadata;
  const added =
    failedNode === undefined
      ? []
      : [replicaNode({ id: replacementId, hostname: spec.hostname, zone: failedNode.zone, number })];
  return {
    after: {
      ...service,
      metadata: nextMetadata(metadata, now),
      spec: {
        ...spec,
        ...(isOpen && imagesBefore(change)),
        nodes: [...changed, ...added],
        ...(failedNode !== undefined && { nextNodeNumber: number + 1 }),
        instanceGeneration: spec.instanceGeneration + 1,
      },
    },
    operation: rollingBack(operation, fault, now),
  };
}

/** A node that has the new image is pinned to it until the rollback reaches it. */
function pinnedToNewImage(node: NodeSpec, { spec }: ManagedServiceObject): NodeSpec {
  const { image, guestKernel, machineStarts, version } = spec;
  if (awaitsRollout(spec, node) || !isEstablished(node)) return withoutPin(node);
  const started = machineStarts !== undefined && { machineStarts };
  return { ...node, pinned: { image, version, ...(guestKernel !== undefined && { guestKernel }), ...started } };
}

function imagesBefore({ image, guestKernel, version }: Replacement) {
  return {
    ...(image && { image: image.from }),
    ...(guestKernel && { guestKernel: guestKernel.from }),
    ...(version && { version: version.from }),
  };
}

/**
 * True if all updated nodes are settled and no node is being replaced. Includes nodes whose machine is down for its
 * image.
 */
export function isImageRolledOut(
  service: ManagedServiceObject,
  { nodes }: ObservedService,
  { status }: OperationObject,
): boolean {
  const { spec } = service;
  const rolledOut = nodes.filter(({ node }) => isEstablished(node) && isRolledOut(service, node));
  if (!rolledOut.every((seen) => isSettled(service, seen))) return false;
  if (status.rollback === undefined) return true;
  return spec.nodes.every(isEstablished);
}

/** True if the service retains the new image although a node did not start with it. */
export function retainsNewImage({ spec }: ManagedServiceObject, operation: OperationObject): boolean {
  const { image, guestKernel } = replacementOf(operation) ?? { image: null, guestKernel: null };
  return (image === null || spec.image === image.to) && (guestKernel === null || spec.guestKernel === guestKernel.to);
}
