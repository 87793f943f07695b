import { isPrimary, isReplicated, isStaying, nextNumberOf } from "./members.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { type ManagedServiceObject, type NodeSpec, withoutVote } from "../managed-service.ts";
import type { ObservedService } from "../observed-service.ts";
import { serviceEvent } from "../service-events.ts";
import { awayAfterMs, follows, provenAgainMs, votersToBe, votesChange } from "./proven-replicas.ts";
import { settledSuccession, verdictOn } from "./succession.ts";
import { awaitsTurn } from "./turns.ts";

/** Pure: the service with what its members have become, and what there is to announce of it. */
export function settleMembers(
  service: ManagedServiceObject,
  observed: ObservedService,
  now: number,
): { readonly service: ManagedServiceObject; readonly events: NewEvent[] } {
  let after = service;
  const events: NewEvent[] = [];
  const { succession } = service.spec;
  if (succession !== undefined && verdictOn(service, observed, now) === "settle") {
    after = settledSuccession(after);
    // A succession that was rolled back ends where it began: no event.
    if (succession.from !== succession.to)
      events.push(
        serviceEvent("service.failed_over", after, {
          from_node_id: succession.from,
          to_node_id: succession.to,
          term: after.status.term,
          seconds: (now - succession.since) / 1_000,
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
  return { service: withVouchers(after, observed), events };
}

/**
 * The members that follow the primary, as its agent is to know them: each change comes with new settings. One that is away for
 * long keeps no primary waiting while controllers are away, and takes nobody's place.
 */
function withVouchers(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject {
  const { spec } = service;
  if (!votesChange(service, observed)) return service;
  const generation = spec.instanceGeneration + 1;
  const nodes = spec.nodes.map((node) => {
    const seen = observed.nodes.find((each) => each.node.id === node.id);
    if (seen === undefined || isPrimary(service, node) || !isStaying(node)) return node;
    if (node.vouches === undefined) return seen.isProven === true ? { ...node, vouches: generation } : node;
    return (seen.awayMs ?? 0) < awayAfterMs ? node : withoutVote(node);
  });
  if (nodes.every((node, index) => node === spec.nodes[index])) return service;
  return { ...service, spec: { ...spec, nodes, instanceGeneration: generation } };
}

/**
 * A primary that hangs loses its replicas in the moment in which it is given up. Without those that commits waited for nobody
 * could take its place, and it would take no settings anyway: it has so long to be given up first.
 */
export const leavesAfterMs = 3_000;

/** Pure: when a replica that does not follow, or was not proven to, is to be looked at again; null when none is. */
export function awayDueInMs(service: ManagedServiceObject, observed: ObservedService): number | null {
  const { spec } = service;
  const { nodes } = observed;
  const unproven = votersToBe(service, observed).map(() => provenAgainMs);
  const due = nodes.flatMap(({ node, awayMs }) => {
    if (awayMs === undefined) return [];
    const isVoucher = spec.nodes.some(({ id, vouches }) => id === node.id && vouches !== undefined);
    const isWaitedFor = spec.syncStandbys?.includes(node.id) === true;
    const isLate = isVoucher || awaitsTurn(spec, node);
    const ends = [...(isWaitedFor ? [leavesAfterMs] : []), ...(isLate ? [awayAfterMs] : [])];
    return ends.flatMap((end) => (awayMs < end ? [end - awayMs] : []));
  });
  const all = [...due, ...unproven];
  return all.length === 0 ? null : Math.min(...all);
}

/**
 * Pure: a service that was made with replicas lets them in once its primary runs: from then on a machine without data is never
 * one to begin with.
 */
export function withFirstReplicas(service: ManagedServiceObject): ManagedServiceObject {
  const { spec, status } = service;
  if (status.state !== "Running" || spec.nodes.length === 1 || isReplicated(spec)) return service;
  return {
    ...service,
    spec: { ...spec, nextNodeNumber: nextNumberOf(spec), instanceGeneration: spec.instanceGeneration + 1 },
  };
}

export function nodeEvent(
  type: "node.added" | "node.removed" | "node.unhealthy" | "node.rewound",
  service: ManagedServiceObject,
  node: NodeSpec,
  more: Readonly<Record<string, unknown>> = {},
): NewEvent {
  const role = isPrimary(service, node) ? "primary" : "replica";
  const { id, hostname, zone } = node;
  return serviceEvent(type, service, { node_id: id, role, hostname, zone, ...more });
}

function withoutJoining(node: NodeSpec): NodeSpec {
  const { joining: _, ...rest } = node;
  return rest;
}
