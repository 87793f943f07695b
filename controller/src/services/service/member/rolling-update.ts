import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../observed-service.ts";
import { hasRequestedSize } from "../../scaling/size-plan.ts";
import { isPrimary, isStaying } from "./members.ts";
import { awaitsRestart, restartsOf, withDeliveredRestarts } from "./restarts.ts";
import { hasDifferentImage, hasOutdatedData, isPinned, nodeVersionOf } from "../canary/node-image.ts";
import { disconnectedAfterMs, follows } from "./proven-replicas.ts";

/** Next step of a rolling update: restarts and image changes of all nodes, one after another. */
export type RolloutStep =
  /** These nodes restart: one of several, or all nodes of a service that serves no clients. */
  | { readonly kind: "restart"; readonly nodes: readonly NodeSpec[] }
  /** A switchover to this replica; the old primary restarts when it begins to follow. */
  | { readonly kind: "switchOver"; readonly to: NodeSpec };

/**
 * Pure: the next step of a rolling update; undefined if no node awaits one, and until updated nodes are back. Replicas
 * are updated first, one at a time, and the primary last. An unreachable replica is skipped until it is back.
 */
export function nextInRollout(service: ManagedServiceObject, observed: ObservedService): RolloutStep | undefined {
  const { metadata, spec, status } = service;
  const pending = spec.nodes.filter((node) => awaitsRollout(spec, node));
  if (pending.length === 0 || metadata.deletionRequestedAt !== undefined) return undefined;
  if (spec.primaryChange !== undefined || spec.canary !== undefined || status.state === "Upgrading") return undefined;
  if (spec.power === "off" || status.state !== "Running" || spec.nodes.length === 1)
    return { kind: "restart", nodes: pending };
  const members = observed.nodes.filter(({ node }) => isStaying(node));
  const primary = members.find(({ node }) => isPrimary(service, node));
  if (primary === undefined || !isSettled(service, primary)) return undefined;
  const replicas = members.filter((member) => member !== primary);
  const updated = replicas.filter(({ node }) => !awaitsRollout(spec, node));
  const waiting = replicas.filter(({ node }) => awaitsRollout(spec, node));
  // A failed copy must not leave the other replicas with data that cannot be promoted.
  const needsCopy = waiting.some(({ node }) => hasOutdatedData(spec, node));
  const isWaitedFor = (replica: ObservedNode) => !isSettled(service, replica) && (!needsCopy || mayReturn(replica));
  if (updated.some(isWaitedFor)) return undefined;
  const { lowers = false, raises = false } = observed.standbySensitiveChange ?? {};
  const primaryStep: RolloutStep = { kind: "restart", nodes: [primary.node] };
  const isPrimaryBehind = awaitsRestart(spec, primary.node);
  const isPrimaryNext = awaitsRollout(spec, primary.node);
  // A replica cannot replay the log of a primary whose values of these parameters are higher.
  if (isPrimaryBehind && lowers && !raises) return primaryStep;
  const next =
    waiting.find((replica) => isSettled(service, replica)) ??
    // A replica with an older version cannot follow a primary with a newer one.
    waiting.find((replica) => replica.connected && replica.isCurrent && lacksVersion(spec, replica.node, primary.node));
  if (next !== undefined) return { kind: "restart", nodes: [next.node] };
  if (!isPrimaryNext || waiting.some(mayReturn)) return undefined;
  const [successor] = updated;
  // A promoted replica would retain the higher values that it needed as a replica, so the primary restarts to lower
  // them.
  if (successor !== undefined && !lowers) return { kind: "switchOver", to: successor.node };
  // The image of a primary is never replaced in place.
  return isPrimaryBehind ? primaryStep : undefined;
}

/** Pure: the service with the next nodes updated, unless the next step is a switchover. */
export function withNextInRollout(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject {
  const step = nextInRollout(service, observed);
  if (step?.kind !== "restart") return service;
  const { spec } = service;
  const ids = step.nodes.map(({ id }) => id);
  const nodes = withDeliveredRestarts(spec, ids).map((node) => (ids.includes(node.id) ? withoutPin(node) : node));
  // One generation for the stop of an engine whose image changes, one for its start.
  const generations = step.nodes.some((node) => isPinned(spec, node)) ? 2 : 1;
  return { ...service, spec: { ...spec, nodes, instanceGeneration: spec.instanceGeneration + generations } };
}

/** Pure: true if the node awaits its restart or its image. */
export function awaitsRollout(spec: ManagedServiceObject["spec"], { id }: Pick<NodeSpec, "id">): boolean {
  const node = spec.nodes.find((each) => each.id === id);
  return node !== undefined && (awaitsRestart(spec, node) || isPinned(spec, node));
}

/** Pure: true if the primary has the service's version, and the node another one. */
function lacksVersion(spec: ManagedServiceObject["spec"], node: NodeSpec, primary: NodeSpec): boolean {
  return nodeVersionOf(spec, primary) === spec.version && nodeVersionOf(spec, node) !== spec.version;
}

/** Pure: the node with the service's image. */
export function withoutPin(node: NodeSpec): NodeSpec {
  const { pinned: _, ...rest } = node;
  return rest;
}

/** Pure: the updated nodes that are not back yet, while others still wait. */
export function unsettledInRollout(service: ManagedServiceObject, { nodes }: ObservedService): ObservedNode[] {
  const { spec } = service;
  if (!spec.nodes.some((node) => awaitsRollout(spec, node))) return [];
  return nodes.filter((seen) => isStaying(seen.node) && isRolledOut(service, seen.node) && !isSettled(service, seen));
}

/** Pure: true if the node is updated, or had nothing to wait for. */
export function isRolledOut({ spec }: ManagedServiceObject, node: NodeSpec): boolean {
  return spec.nodes.some(({ id }) => id === node.id) && !awaitsRollout(spec, node);
}

/** Pure: true if the node serves or follows with the newest settings and all restarts of its settings. */
export function isSettled(service: ManagedServiceObject, seen: ObservedNode): boolean {
  const { spec } = service;
  const { node, machine, connected, isCurrent, instance } = seen;
  if (machine?.status.state !== "running" || !connected || !isCurrent || instance?.state !== "running") return false;
  if (Number(instance.generation) < spec.instanceGeneration) return false;
  if (Number(instance.restartCount) < restartsOf(spec, node).delivered) return false;
  if (spec.resizing !== undefined && !hasRequestedSize(machine)) return false;
  if (hasDifferentImage(service, machine)) return false;
  return isPrimary(service, node) || follows(seen);
}

/** An agent takes a moment to find another controller. */
function mayReturn({ connected, isCurrent, instance, disconnectedMs: awayMs = 0 }: ObservedNode): boolean {
  if (connected && isCurrent && instance !== undefined) return instance.state !== "failed";
  return awayMs < disconnectedAfterMs;
}
