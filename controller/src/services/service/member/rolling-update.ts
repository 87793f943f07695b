import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { isEstablished } from "./members.ts";
import { withDeliveredRestarts } from "./restarts.ts";
import { awaitsRollout, withoutPin } from "./rollout-state.ts";
import { isPinned } from "../canary/node-image.ts";

/** Next step of a rolling update: restarts and image changes of all nodes, one after another. */
export type RolloutStep =
  /** These nodes restart: one of several, or all nodes of a service that serves no clients. */
  | { readonly kind: "restart"; readonly nodes: readonly NodeSpec[] }
  /** A switchover to this replica; the old primary restarts when it begins to follow. */
  | { readonly kind: "switchOver"; readonly to: NodeSpec };

/**
 * The next step of a rolling update; undefined if no node awaits one, or while updated nodes are not healthy again.
 * `next` chooses the next step of a running service's members, by the rules of its topology.
 */
export function rollingStep(
  service: ManagedServiceObject,
  observed: ObservedService,
  next: (
    service: ManagedServiceObject,
    observed: ObservedService,
    members: readonly ObservedNode[],
  ) => RolloutStep | undefined,
): RolloutStep | undefined {
  const { metadata, spec, status } = service;
  const pending = spec.nodes.filter((node) => awaitsRollout(spec, node));
  if (pending.length === 0 || metadata.deletionRequestedAt !== undefined) return undefined;
  if (spec.primaryChange !== undefined || spec.canary !== undefined || status.state === "Upgrading") return undefined;
  if (spec.power === "off" || status.state !== "Running" || spec.nodes.length === 1)
    return { kind: "restart", nodes: pending };
  const members = observed.nodes.filter(({ node }) => isEstablished(node));
  return next(service, observed, members);
}

/** The service with new settings for the nodes of the step; unchanged for a switchover. */
export function withRolloutStep(service: ManagedServiceObject, step: RolloutStep | undefined): ManagedServiceObject {
  if (step?.kind !== "restart") return service;
  const { spec } = service;
  const ids = step.nodes.map(({ id }) => id);
  const nodes = withDeliveredRestarts(spec, ids).map((node) => (ids.includes(node.id) ? withoutPin(node) : node));
  // A change of the image takes two generations: one stops the engine, the next starts it.
  const generations = step.nodes.some((node) => isPinned(spec, node)) ? 2 : 1;
  return { ...service, spec: { ...spec, nodes, instanceGeneration: spec.instanceGeneration + generations } };
}
