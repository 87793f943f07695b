import { versionNumber } from "#catalog/version-number.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ImageChange, Replacement } from "#operation/maintenance-work.ts";
import { maintenanceWorkOf, type OperationObject, replacementOf, rollingBack } from "#operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { isPrimary, isStaying, nextNumberOf, standbysOf } from "../member/members.ts";
import { replicaNode } from "../member/new-replica.ts";
import { turnFault } from "../member/turn-fault.ts";
import { awaitsTurn, hadTurn, isSettled, unsettledTurns, withoutKept } from "../member/turns.ts";
import type { ObservedService } from "../observed-service.ts";
import type { Fault } from "../procedure/procedure.ts";

/** Pure: can another image come to the nodes one after another, replicas first, with clients admitted all the time? */
export function rollsImages(service: ManagedServiceObject): boolean {
  const { state, nodes } = service.status;
  const runs = (id: string) => nodes.some((node) => node.id === id && node.status === "Running");
  return state === "Running" && standbysOf(service).some(({ id }) => runs(id));
}

/** Pure: the nodes, each keeping what it has until its turn. */
export function withImagesKept(
  { spec }: ManagedServiceObject,
  image: ImageChange | null,
  guestKernel: ImageChange | undefined,
): NodeSpec[] {
  const kernel = guestKernel?.from ?? spec.guestKernel;
  const { machineStarts } = spec;
  const keeps = {
    image: image?.from ?? spec.image,
    version: spec.version,
    ...(kernel !== undefined && { guestKernel: kernel }),
    ...(machineStarts !== undefined && { machineStarts }),
  };
  return spec.nodes.map((node) => (node.joining === true ? node : { ...node, keeps }));
}

/** Pure: the nodes of a service whose primary's data are upgraded: replicas keep what they have, data too, until the primary's are switched. */
export function withDataKept(service: ManagedServiceObject, image: ImageChange | null): NodeSpec[] {
  const kept = withImagesKept(service, image, undefined);
  return kept.map((node) => (isPrimary(service, node) ? withoutKept(node) : node));
}

/** Pure: why the image does not do on the nodes that have it; undefined while it may, and when that was answered already. */
export function imageTurnFault(
  observed: ObservedService,
  operation: OperationObject,
  now: number,
  service: ManagedServiceObject,
): Fault | undefined {
  if (operation.status.rollback !== undefined) return undefined;
  const fault = turnFault(observed, operation, now, service);
  if (fault !== undefined) return fault;
  const toVersion = replacementOf(operation)?.image?.toVersion ?? "";
  const acceptsOrder = maintenanceWorkOf(operation)?.acceptsTextOrder === true;
  for (const seen of observed.nodes) {
    const { node, instance } = seen;
    if (node.joining === true || !hadTurn(service, node) || !isSettled(service, seen)) continue;
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
 * Pure: the way back, as long as the primary has the old image: each node that has the new one gets the old one, one after another.
 * A node that did not come up is made anew from a copy. Once the primary has the new image only that is done, and the rest goes on.
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
  const isOpen = spec.nodes.some((node) => isPrimary(service, node) && awaitsTurn(spec, node));
  const [harmed] = unsettledTurns(service, observed)
    .map(({ node }) => node)
    .filter((node) => !isPrimary(service, node));
  const number = nextNumberOf(spec);
  const kept = spec.nodes.map((node) => {
    if (node.id === harmed?.id) return { ...withoutKept(node), leaving: true as const };
    return isOpen ? turnedBack(node, service) : node;
  });
  // One operation makes one node anew at most, so that its id serves for both.
  const { id: anew } = operation.metadata;
  const added =
    harmed === undefined ? [] : [replicaNode({ id: anew, hostname: spec.hostname, zone: harmed.zone, number })];
  return {
    after: {
      ...service,
      metadata: nextMetadata(metadata, now),
      spec: {
        ...spec,
        ...(isOpen && imagesBefore(change)),
        nodes: [...kept, ...added],
        ...(harmed !== undefined && { nextNodeNumber: number + 1 }),
        instanceGeneration: spec.instanceGeneration + 1,
      },
    },
    operation: rollingBack(operation, fault, now),
  };
}

/** A node that has the new image already keeps it until its turn to go back. */
function turnedBack(node: NodeSpec, { spec }: ManagedServiceObject): NodeSpec {
  const { image, guestKernel, machineStarts, version } = spec;
  if (awaitsTurn(spec, node) || !isStaying(node)) return withoutKept(node);
  const started = machineStarts !== undefined && { machineStarts };
  return { ...node, keeps: { image, version, ...(guestKernel !== undefined && { guestKernel }), ...started } };
}

function imagesBefore({ image, guestKernel, version }: Replacement) {
  return {
    ...(image && { image: image.from }),
    ...(guestKernel && { guestKernel: guestKernel.from }),
    ...(version && { version: version.from }),
  };
}

/** Pure: is everybody back who had its turn, and nobody still made anew? A machine that is down for its image is waited for. */
export function isInPlace(
  service: ManagedServiceObject,
  { nodes }: ObservedService,
  { status }: OperationObject,
): boolean {
  const { spec } = service;
  const turned = nodes.filter(({ node }) => isStaying(node) && hadTurn(service, node));
  if (!turned.every((seen) => isSettled(service, seen))) return false;
  if (status.rollback === undefined) return true;
  return spec.nodes.every(isStaying);
}

/** Did the service keep the new image, though a node did not come up from it? */
export function keptImage({ spec }: ManagedServiceObject, operation: OperationObject): boolean {
  const { image, guestKernel } = replacementOf(operation) ?? { image: null, guestKernel: null };
  return (image === null || spec.image === image.to) && (guestKernel === null || spec.guestKernel === guestKernel.to);
}
