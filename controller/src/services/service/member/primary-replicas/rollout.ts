import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import type { ObservedNode, ObservedService } from "../../reconcile/observed-service.ts";
import { hasOutdatedData, nodeVersionOf } from "../../canary/node-image.ts";
import { awaitsRestart } from "../restarts.ts";
import { rollingStep, type RolloutStep, withRolloutStep } from "../rolling-update.ts";
import { awaitsRollout, isSettled, mayReconnect } from "../rollout-state.ts";
import { isPrimary } from "./primary.ts";

/**
 * The next step of a rolling update: replicas are updated first, one at a time, and the primary last. An
 * unreachable replica is skipped until it reconnects.
 */
export function nextInRollout(service: ManagedServiceObject, observed: ObservedService): RolloutStep | undefined {
  return rollingStep(service, observed, nextMember);
}

/** The service with the next nodes updated, unless the next step is a switchover. */
export function withNextInRollout(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject {
  return withRolloutStep(service, nextInRollout(service, observed));
}

function nextMember(
  service: ManagedServiceObject,
  observed: ObservedService,
  members: readonly ObservedNode[],
): RolloutStep | undefined {
  const { spec } = service;
  const primary = members.find(({ node }) => isPrimary(service, node));
  if (primary === undefined || !isSettled(service, primary)) return undefined;
  const replicas = members.filter((member) => member !== primary);
  const updated = replicas.filter(({ node }) => !awaitsRollout(spec, node));
  const waiting = replicas.filter(({ node }) => awaitsRollout(spec, node));
  // If a copy fails, another replica must still have data that can be promoted.
  const needsCopy = waiting.some(({ node }) => hasOutdatedData(spec, node));
  const isWaitedFor = (replica: ObservedNode) => !isSettled(service, replica) && (!needsCopy || mayReconnect(replica));
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
  if (!isPrimaryNext || waiting.some(mayReconnect)) return undefined;
  const [successor] = updated;
  // A promoted replica would retain the higher values, so the primary restarts in place to lower them.
  if (successor !== undefined && !lowers) return { kind: "switchOver", to: successor.node };
  // The image of a primary is never replaced in place.
  return isPrimaryBehind ? primaryStep : undefined;
}

/** True if the primary has the service's version, and the node another one. */
function lacksVersion(spec: ManagedServiceObject["spec"], node: NodeSpec, primary: NodeSpec): boolean {
  return nodeVersionOf(spec, primary) === spec.version && nodeVersionOf(spec, node) !== spec.version;
}
