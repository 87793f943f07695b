import type { PrimaryLeaseRules } from "#fleet/session/primary-leases.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { engineProfileOf } from "../../../engine/engine-profiles.ts";
import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import type { ObservedNode } from "../../reconcile/observed-service.ts";
import { isEstablished } from "../members.ts";

/*
 * Members of a service with one primary, and replicas that follow it.
 *
 * The primary takes writes under a lease of a few seconds that controllers grant, or its voters confirm while no
 * controller is reachable. A replica becomes a failover candidate, and thereby a voter, once both ends confirm that it
 * follows (`replication/proven-replicas.ts`, `update-members.ts`). `failover/failure-detector.ts` and
 * `failover/suspicion.ts` detect a silent primary, `failover/automatic-failover.ts` starts its failover, and
 * `failover/fence-verdict.ts` names a successor once the old primary has certainly ended. A switchover starts at
 * `../change-nodes.ts` or `switch-over.ts`. Both are primary changes: `primary-change-plan.ts` decides their steps and
 * `change-primary.ts` performs them. `rollout.ts` restarts members one after another.
 */

type Members = Pick<ManagedServiceObject, "spec" | "status">;

/** The node that takes writes. Throws if `primaryNodeId` names no member. */
export function primaryOf(service: ManagedServiceObject): NodeSpec {
  const primary = service.spec.nodes.find((node) => node.id === service.status.primaryNodeId);
  if (primary === undefined)
    throw new Error(`service ${service.metadata.id} names a primary that is not one of its nodes`);
  return primary;
}

/** True for the current primary, or for the last one while no node is the primary. */
export function isPrimary({ status }: Pick<ManagedServiceObject, "status">, node: Pick<NodeSpec, "id">): boolean {
  return status.primaryNodeId === node.id;
}

/** The replicas that have their data and are not being removed. */
export function standbysOf(service: Members): NodeSpec[] {
  return service.spec.nodes.filter((node) => !isPrimary(service, node) && isEstablished(node));
}

/**
 * True if the primary takes writes only under a lease. `leaseProtocol`: version of the lease protocol that its agent
 * supports.
 */
export function needsPrimaryLease(
  { spec }: Pick<ManagedServiceObject, "spec">,
  leaseProtocol: number = Number.POSITIVE_INFINITY,
): boolean {
  const needed = engineProfileOf(spec.databaseType).replicas?.primaryLeaseVersion;
  return needed !== undefined && leaseProtocol >= needed;
}

/**
 * The replicas that may become the primary after a failover. The primary's agent counts them as voters: they
 * confirm its lease while no controller is reachable.
 */
export function failoverCandidatesOf(service: Members): NodeSpec[] {
  return standbysOf(service).filter(({ failoverCandidate }) => failoverCandidate !== undefined);
}

/** Id of the node that agents accept as the primary; empty while there is none. */
export function namedPrimary({ spec, status }: Members): string {
  const { step } = spec.primaryChange ?? {};
  return step === "fence" || step === "yield" || step === "recall" ? "" : status.primaryNodeId;
}

/** True if the replica receives the primary's log, by its agent's last report. */
export function follows({ connected, isCurrent, instance }: ObservedNode): boolean {
  const state = instance?.replication?.state;
  return connected && isCurrent && instance?.state === "running" && (state === "streaming" || state === "catchup");
}

/** Rules that grant a lease only to the primary that the newest term names. No node gets a lease while it changes. */
export function createPrimaryLeaseRules(
  services: Pick<Collection<ManagedServiceObject>, "get" | "untilRevision">,
): PrimaryLeaseRules {
  return {
    refusal(machineId, serviceId, term) {
      const service = services.get(serviceId)?.object;
      if (service === undefined) return "there is no such service";
      if (namedPrimary(service) !== machineId) return "another node is the primary, or none is";
      return service.status.term === term ? undefined : `the term is ${service.status.term}, not ${term}`;
    },
    untilRevision: (revision, timeoutMs) => services.untilRevision(revision, timeoutMs),
  };
}
