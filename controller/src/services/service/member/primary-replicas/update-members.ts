import { isReplicated, isEstablished, nextNumberOf, disconnectedAfterMs } from "../members.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { type ManagedServiceObject, type NodeSpec, withoutFailoverCandidacy } from "../../managed-service.ts";
import type { ObservedService } from "../../reconcile/observed-service.ts";
import { nodeEvent, serviceEvent } from "../../service-events.ts";
import { proofIntervalMs, nextVoters, canChangeVoters, unconfirmedStandbys } from "./replication/proven-replicas.ts";
import { withoutPrimaryChange, primaryChangeVerdict } from "./primary-change.ts";
import { follows, isPrimary } from "./primary.ts";
import { awaitsRollout } from "../rollout-state.ts";

/** The service with the observed progress of its members and its primary change, and their events. */
export function updateMembers(
  service: ManagedServiceObject,
  observed: ObservedService,
  now: number,
): { readonly service: ManagedServiceObject; readonly events: NewEvent[] } {
  let after = service;
  const events: NewEvent[] = [];
  const { primaryChange } = service.spec;
  if (primaryChange !== undefined && primaryChangeVerdict(service, observed, now) === "settle") {
    after = withoutPrimaryChange(after);
    // A reverted change emits no event.
    if (primaryChange.from !== primaryChange.to)
      events.push(
        serviceEvent("service.failed_over", after, {
          from_node_id: primaryChange.from,
          to_node_id: primaryChange.to,
          term: after.status.term,
          seconds: (now - primaryChange.since) / 1_000,
        }),
      );
  }
  const joined = observed.nodes.filter((node) => node.node.joining === true && follows(node));
  if (joined.length > 0) {
    const ids = new Set(joined.map(({ node }) => node.id));
    const nodes = after.spec.nodes.map((node) => (ids.has(node.id) ? withoutJoining(node) : node));
    after = { ...after, spec: { ...after.spec, nodes } };
    for (const { node } of joined) events.push(nodeEvent("node.added", after, node));
  }
  return { service: withFailoverCandidates(after, observed), events };
}

/**
 * Updates the failover candidates; each change gives the primary's agent new settings. A replica that does not follow
 * is removed after a delay: the primary must not wait for its vote, and it must not become the primary.
 */
function withFailoverCandidates(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject {
  const { spec } = service;
  if (!canChangeVoters(service, observed)) return service;
  const generation = spec.instanceGeneration + 1;
  const nodes = spec.nodes.map((node) => {
    const member = observed.nodes.find((each) => each.node.id === node.id);
    if (member === undefined || isPrimary(service, node) || !isEstablished(node)) return node;
    if (node.failoverCandidate === undefined)
      return member.isProven === true ? { ...node, failoverCandidate: generation } : node;
    return (member.disconnectedMs ?? 0) < disconnectedAfterMs ? node : withoutFailoverCandidacy(node);
  });
  if (nodes.every((node, index) => node === spec.nodes[index])) return service;
  return { ...service, spec: { ...spec, nodes, instanceGeneration: generation } };
}

/**
 * Time after which commits no longer wait for a standby that does not follow. The replicas of a hanging primary stop
 * following at its failover, and only standbys that commits waited for may replace it: so the failover must start
 * before this time.
 */
export const syncStandbyTimeoutMs = 3_000;

/**
 * Milliseconds until the next check of a replica that does not follow or is not proven; null if there is none.
 */
export function memberRecheckInMs(service: ManagedServiceObject, observed: ObservedService): number | null {
  const { spec } = service;
  const { nodes } = observed;
  const unproven = [...nextVoters(service, observed), ...unconfirmedStandbys(service, observed)].map(
    () => proofIntervalMs,
  );
  const delays = nodes.flatMap(({ node, disconnectedMs: awayMs }) => {
    if (awayMs === undefined) return [];
    const isCandidate = spec.nodes.some(
      ({ id, failoverCandidate }) => id === node.id && failoverCandidate !== undefined,
    );
    const isWaitedFor = spec.syncStandbys?.includes(node.id) === true;
    const isLate = isCandidate || awaitsRollout(spec, node);
    const ends = [...(isWaitedFor ? [syncStandbyTimeoutMs] : []), ...(isLate ? [disconnectedAfterMs] : [])];
    return ends.flatMap((end) => (awayMs < end ? [end - awayMs] : []));
  });
  const all = [...delays, ...unproven];
  return all.length === 0 ? null : Math.min(...all);
}

/**
 * Admits the first replicas of a service once its primary runs. Afterwards a machine without data must never start as
 * the primary.
 */
export function withFirstReplicas(service: ManagedServiceObject): ManagedServiceObject {
  const { spec, status } = service;
  if (status.state !== "Running" || spec.nodes.length === 1 || isReplicated(spec)) return service;
  return {
    ...service,
    spec: { ...spec, nextNodeNumber: nextNumberOf(spec), instanceGeneration: spec.instanceGeneration + 1 },
  };
}

function withoutJoining(node: NodeSpec): NodeSpec {
  const { joining: _, ...rest } = node;
  return rest;
}
