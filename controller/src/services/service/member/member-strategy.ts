import type { CatalogData } from "#catalog/catalog.ts";
import type { ReconcileOutcome } from "#kernel/runtime/reconciler.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "../reconcile/observed-service.ts";
import type { StepProgress } from "../procedure/procedure.ts";
import type { AutomaticFailoverDeps } from "./primary-replicas/failover/automatic-failover.ts";
import type { FailureDetector } from "./primary-replicas/failover/failure-detector.ts";

/** Names of the steps of operations that change members. */
export interface MemberSteps {
  /** Step in which members restart one after another. */
  readonly restart: string;
  /** Step in which only the leader has not restarted yet. */
  readonly restartLast: string;
}

/** Changes of a service's members, by the topology of its engine; their roles are in `member-roles.ts`. */
export interface MemberStrategy {
  /** Facts that are derived from the reports of several members. */
  derive(
    service: ManagedServiceObject,
    nodes: readonly ObservedNode[],
    catalog: CatalogData,
  ): Pick<ObservedService, "standbySensitiveChange">;
  /** Adds facts that are not reported, by queries of members. */
  queryMembers(
    service: ManagedServiceObject,
    observed: ObservedService,
    deps: AutomaticFailoverDeps,
    signal: AbortSignal,
  ): Promise<ObservedService>;
  /**
   * The steps of all members, in a safe order. `planNode` returns the steps of one node regardless of the others, as
   * for a service with a single node.
   */
  plan(
    service: ManagedServiceObject,
    observed: ObservedService,
    planNode: (node: ObservedNode) => ServiceStep[],
  ): ServiceStep[];
  /** The service with the observed progress of its members, and their events. */
  updateStatus(
    service: ManagedServiceObject,
    observed: ObservedService,
    now: number,
  ): { readonly service: ManagedServiceObject; readonly events: readonly NewEvent[] };
  /** The service with the next change of its members that the observation allows. */
  advance(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject;
  /** Starts a repair of the service, such as a failover, in a separate transaction. Undefined if none is due. */
  repair(
    service: Stored<ManagedServiceObject>,
    observe: () => ObservedService,
    deps: AutomaticFailoverDeps,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome | undefined>;
  /** True if a member that the service needs is being replaced, or is about to be. */
  isRepairing(service: ManagedServiceObject, observed: ObservedService): boolean;
  /** True if a repair may be due. No event announces that, so suspects are polled. */
  isSuspect(service: ManagedServiceObject, detector: Pick<FailureDetector, "leaseReport">): boolean;
  readonly steps: MemberSteps;
  /** Name of the step that explains why no member changes now; undefined if nothing prevents changes. */
  obstacle(service: ManagedServiceObject, observed: ObservedService): string | undefined;
  /** Share of the service's data that a joining member has copied, from 0 to 1. */
  copied(observed: ObservedService, member: ObservedNode): number;
  /** Progress of the removal of a member. */
  removal(observed: ObservedService, node: NodeSpec | undefined): StepProgress;
  /** Milliseconds until members must be checked again; null if there is no reason to. */
  recheckInMs(service: ManagedServiceObject, observed: ObservedService): number | null;
}
