import type { ManagedServiceObject } from "../../managed-service.ts";
import type { ObservedService } from "../../reconcile/observed-service.ts";
import type { MemberStrategy } from "../member-strategy.ts";
import { failOverSilentPrimary } from "./failover/automatic-failover.ts";
import { discardedTransition, slotTransition } from "./replication/replication-events.ts";
import { planMembers } from "./member-plan.ts";
import { withProvenReplicas } from "./replication/proven-replicas.ts";
import { withNextInRollout } from "./rollout.ts";
import { standbySensitiveChangeOf } from "./replication/standby-sensitive-settings.ts";
import { canFailOver, isSuspect } from "./failover/suspicion.ts";
import { withSyncStandbys } from "./replication/sync-standbys.ts";
import { memberRecheckInMs, updateMembers, withFirstReplicas } from "./update-members.ts";

/** Strategy of services with one primary, which controllers name, and replicas that follow it. */
export const primaryReplicas: MemberStrategy = {
  derive: standbySensitiveChangeOf,
  queryMembers: withProvenReplicas,
  plan: planMembers,
  updateStatus,
  advance: (service, observed) => withNextInRollout(withSyncStandbys(withFirstReplicas(service), observed), observed),
  repair: failOverSilentPrimary,
  isRepairing: (service, observed) => service.spec.primaryChange !== undefined || canFailOver(service, observed),
  isSuspect: ({ spec, status }, detector) =>
    spec.nodes.length > 1 && isSuspect(detector.leaseReport(status.primaryNodeId)),
  steps: { restart: "RestartReplicas", restartLast: "SwitchOver" },
  obstacle: () => undefined,
  copied({ nodes }, { instance }) {
    const primary = nodes.find(({ isReplica }) => isReplica !== true);
    const all = Math.max(1, Number(primary?.instance?.dataBytes ?? 0n));
    return Math.min(1, Number(instance?.replication?.copiedBytes ?? 0n) / all);
  },
  removal: () => ({ step: "RemoveServer", progressPct: 50 }),
  recheckInMs: memberRecheckInMs,
};

function updateStatus(before: ManagedServiceObject, observed: ObservedService, now: number) {
  const { service, events } = updateMembers(before, observed, now);
  const discarded = discardedTransition(service, observed);
  const slots = slotTransition(service, observed);
  const status = {
    ...service.status,
    ...(discarded.record !== undefined && { discarded: discarded.record }),
    ...(slots.record !== undefined && { slots: slots.record }),
  };
  return { service: { ...service, status }, events: [...events, ...discarded.events, ...slots.events] };
}
