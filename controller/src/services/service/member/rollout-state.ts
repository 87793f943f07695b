import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import { hasRequestedSize } from "../../scaling/size-plan.ts";
import { isInSync } from "./member-roles.ts";
import { disconnectedAfterMs, isEstablished } from "./members.ts";
import { awaitsRestart, restartsOf } from "./restarts.ts";
import { hasDifferentImage, isPinned } from "../canary/node-image.ts";

/** True if the node awaits its restart or its image. */
export function awaitsRollout(spec: ManagedServiceObject["spec"], { id }: Pick<NodeSpec, "id">): boolean {
  const node = spec.nodes.find((each) => each.id === id);
  return node !== undefined && (awaitsRestart(spec, node) || isPinned(spec, node));
}

/** The node without its pin, so that it gets the service's image. */
export function withoutPin(node: NodeSpec): NodeSpec {
  const { pinned: _, ...rest } = node;
  return rest;
}

/** The updated nodes that are not settled yet, while other nodes still await the update. */
export function unsettledInRollout(service: ManagedServiceObject, { nodes }: ObservedService): ObservedNode[] {
  const { spec } = service;
  if (!spec.nodes.some((node) => awaitsRollout(spec, node))) return [];
  return nodes.filter(
    (member) => isEstablished(member.node) && isRolledOut(service, member.node) && !isSettled(service, member),
  );
}

/** True if the node is updated, or no update was pending. */
export function isRolledOut({ spec }: ManagedServiceObject, node: NodeSpec): boolean {
  return spec.nodes.some(({ id }) => id === node.id) && !awaitsRollout(spec, node);
}

/** True if the node runs with the newest settings and all restarts of its settings. */
export function hasNewestSettings(service: ManagedServiceObject, member: ObservedNode): boolean {
  const { spec } = service;
  const { node, machine, connected, isCurrent, instance } = member;
  if (machine?.status.state !== "running" || !connected || !isCurrent || instance?.state !== "running") return false;
  if (Number(instance.generation) < spec.instanceGeneration) return false;
  if (Number(instance.restartCount) < restartsOf(spec, node).delivered) return false;
  if (spec.resizing !== undefined && !hasRequestedSize(machine)) return false;
  return !hasDifferentImage(service, machine);
}

/** True if the member has the newest settings and is in sync with the other members. */
export function isSettled(service: ManagedServiceObject, member: ObservedNode): boolean {
  return hasNewestSettings(service, member) && isInSync(service, member);
}

/** True if a disconnected member may still reconnect: an agent needs some seconds to find another controller. */
export function mayReconnect({ connected, isCurrent, instance, disconnectedMs: awayMs = 0 }: ObservedNode): boolean {
  if (connected && isCurrent && instance !== undefined) return instance.state !== "failed";
  return awayMs < disconnectedAfterMs;
}
