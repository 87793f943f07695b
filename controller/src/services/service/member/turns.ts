import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../observed-service.ts";
import { isMade } from "../../scaling/size-plan.ts";
import { isPrimary, isStaying } from "./members.ts";
import { isBehind, restartsOf, withTold } from "./restarts.ts";
import { hasOtherImage, isOutdated, keepsOther, versionOf } from "../trial/other-image.ts";
import { awayAfterMs, follows } from "./proven-replicas.ts";

/** What comes next on the way through the nodes that are to restart. */
export type Turn =
  /** These restart as they are: one of several, or all of a service that serves nobody. */
  | { readonly kind: "restart"; readonly nodes: readonly NodeSpec[] }
  /** The primary gives way to this replica, and restarts as it begins to follow it. */
  | { readonly kind: "switchOver"; readonly to: NodeSpec };

/**
 * Pure: whose turn it is to restart; undefined while nobody lacks a restart, and while whoever had its turn is not back. Replicas
 * come first, one at a time, and the primary comes last. A replica that stays out of reach is passed over, and comes when it is back.
 */
export function nextTurn(service: ManagedServiceObject, observed: ObservedService): Turn | undefined {
  const { metadata, spec, status } = service;
  const behind = spec.nodes.filter((node) => awaitsTurn(spec, node));
  if (behind.length === 0 || metadata.deletionRequestedAt !== undefined) return undefined;
  if (spec.succession !== undefined || spec.trial !== undefined || status.state === "Upgrading") return undefined;
  if (spec.power === "off" || status.state !== "Running" || spec.nodes.length === 1)
    return { kind: "restart", nodes: behind };
  const members = observed.nodes.filter(({ node }) => isStaying(node));
  const primary = members.find(({ node }) => isPrimary(service, node));
  if (primary === undefined || !isSettled(service, primary)) return undefined;
  const replicas = members.filter((member) => member !== primary);
  const done = replicas.filter(({ node }) => !awaitsTurn(spec, node));
  const waiting = replicas.filter(({ node }) => awaitsTurn(spec, node));
  // A copy that does not come about is no reason to leave others with data that nobody can be promoted with.
  const isAnew = waiting.some(({ node }) => isOutdated(spec, node));
  const isWaitedFor = (replica: ObservedNode) => !isSettled(service, replica) && (!isAnew || isComing(replica));
  if (done.some(isWaitedFor)) return undefined;
  const { lowers = false, raises = false } = observed.heldSettings ?? {};
  const primaryTurn: Turn = { kind: "restart", nodes: [primary.node] };
  const isPrimaryBehind = isBehind(spec, primary.node);
  const isPrimaryNext = awaitsTurn(spec, primary.node);
  // Replicas cannot replay the log of a primary that has more of these than they have.
  if (isPrimaryBehind && lowers && !raises) return primaryTurn;
  const next =
    waiting.find((replica) => isSettled(service, replica)) ??
    // One of an older version cannot follow a primary of a newer one.
    waiting.find((replica) => replica.connected && replica.isCurrent && lacksVersion(spec, replica.node, primary.node));
  if (next !== undefined) return { kind: "restart", nodes: [next.node] };
  if (!isPrimaryNext || waiting.some(isComing)) return undefined;
  const [heir] = done;
  // A promoted replica would keep the higher values that it needed as a replica: to lower them, the primary restarts.
  if (heir !== undefined && !lowers) return { kind: "switchOver", to: heir.node };
  // Another image never comes under a primary.
  return isPrimaryBehind ? primaryTurn : undefined;
}

/** Pure: the service with the turn of whoever is next, unless that takes a switchover. */
export function withTurn(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject {
  const turn = nextTurn(service, observed);
  if (turn?.kind !== "restart") return service;
  const { spec } = service;
  const ids = turn.nodes.map(({ id }) => id);
  const nodes = withTold(spec, ids).map((node) => (ids.includes(node.id) ? withoutKept(node) : node));
  // One for the stop of an engine whose image changes, one for its start.
  const generations = turn.nodes.some((node) => keepsOther(spec, node)) ? 2 : 1;
  return { ...service, spec: { ...spec, nodes, instanceGeneration: spec.instanceGeneration + generations } };
}

/** Pure: does the node wait for its turn to restart, or to have another image? */
export function awaitsTurn(spec: ManagedServiceObject["spec"], { id }: Pick<NodeSpec, "id">): boolean {
  const node = spec.nodes.find((each) => each.id === id);
  return node !== undefined && (isBehind(spec, node) || keepsOther(spec, node));
}

/** Pure: does the primary have the service's version, and the node another one? */
function lacksVersion(spec: ManagedServiceObject["spec"], node: NodeSpec, primary: NodeSpec): boolean {
  return versionOf(spec, primary) === spec.version && versionOf(spec, node) !== spec.version;
}

/** Pure: a node whose machine has the service's image. */
export function withoutKept(node: NodeSpec): NodeSpec {
  const { keeps: _, ...rest } = node;
  return rest;
}

/** Pure: the nodes that had their turn while others wait for theirs, and are not back. */
export function unsettledTurns(service: ManagedServiceObject, { nodes }: ObservedService): ObservedNode[] {
  const { spec } = service;
  if (!spec.nodes.some((node) => awaitsTurn(spec, node))) return [];
  return nodes.filter((seen) => isStaying(seen.node) && hadTurn(service, seen.node) && !isSettled(service, seen));
}

/** Pure: did it have its turn, or none to wait for? */
export function hadTurn({ spec }: ManagedServiceObject, node: NodeSpec): boolean {
  return spec.nodes.some(({ id }) => id === node.id) && !awaitsTurn(spec, node);
}

/** Pure: does it do its part, with the newest settings and all restarts that it was told of? */
export function isSettled(service: ManagedServiceObject, seen: ObservedNode): boolean {
  const { spec } = service;
  const { node, machine, connected, isCurrent, instance } = seen;
  if (machine?.status.state !== "running" || !connected || !isCurrent || instance?.state !== "running") return false;
  if (Number(instance.generation) < spec.instanceGeneration) return false;
  if (Number(instance.restartCount) < restartsOf(spec, node).told) return false;
  if (spec.resizing !== undefined && !isMade(machine)) return false;
  if (hasOtherImage(service, machine)) return false;
  return isPrimary(service, node) || follows(seen);
}

/** An agent takes a moment to find another controller. */
function isComing({ connected, isCurrent, instance, awayMs = 0 }: ObservedNode): boolean {
  if (connected && isCurrent && instance !== undefined) return instance.state !== "failed";
  return awayMs < awayAfterMs;
}
