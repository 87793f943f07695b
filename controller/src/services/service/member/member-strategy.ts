import type { CatalogData } from "#catalog/catalog.ts";
import type { Outcome } from "#kernel/runtime/reconciler.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode, ObservedService, ServiceStep } from "../reconcile/observed-service.ts";
import type { StepProgress } from "../procedure/procedure.ts";
import type { AutomaticFailoverDeps } from "./primary-replicas/failover/automatic-failover.ts";
import type { FailureDetector } from "./primary-replicas/failover/failure-detector.ts";

/** Names of steps of operations about members. */
export interface MemberSteps {
  /** Members restart one after another. */
  readonly restart: string;
  /** Only the leader is left to restart. */
  readonly restartLast: string;
}

/** Changes of a service's members, by the topology of its engine; their roles are in `member-roles.ts`. */
export interface MemberStrategy {
  /** Facts about members that follow from their reports together. */
  combine(
    service: ManagedServiceObject,
    nodes: readonly ObservedNode[],
    catalog: CatalogData,
  ): Pick<ObservedService, "standbySensitiveChange">;
  /** Adds facts that only queries of members show. */
  query(
    service: ManagedServiceObject,
    observed: ObservedService,
    deps: AutomaticFailoverDeps,
    signal: AbortSignal,
  ): Promise<ObservedService>;
  /**
   * The steps of all members, in an order that is safe. `planNode`: the steps of a node regardless of the others,
   * which are also the steps of a single node.
   */
  plan(
    service: ManagedServiceObject,
    observed: ObservedService,
    planNode: (node: ObservedNode) => ServiceStep[],
  ): ServiceStep[];
  /** The service with the observed progress of its members, and their events. */
  note(
    service: ManagedServiceObject,
    observed: ObservedService,
    now: number,
  ): { readonly service: ManagedServiceObject; readonly events: readonly NewEvent[] };
  /** The service with the next change of its members that the observation allows. */
  advance(service: ManagedServiceObject, observed: ObservedService): ManagedServiceObject;
  /** Begins a repair of the service in a transaction of its own. Undefined if there is no reason to. */
  repair(
    service: Stored<ManagedServiceObject>,
    observe: () => ObservedService,
    deps: AutomaticFailoverDeps,
    signal: AbortSignal,
  ): Promise<Outcome | undefined>;
  /** True if a member that the service needs is being replaced, or is about to be. */
  isRepairing(service: ManagedServiceObject, observed: ObservedService): boolean;
  /** True if a repair may be due, which no event announces. */
  isSuspect(service: ManagedServiceObject, detector: Pick<FailureDetector, "leaseReport">): boolean;
  readonly steps: MemberSteps;
  /** Reason why no member changes now, as a step; undefined if there is none. */
  obstacle(service: ManagedServiceObject, observed: ObservedService): string | undefined;
  /** The share of the service's data that a joining member has, from 0 to 1. */
  copied(observed: ObservedService, member: ObservedNode): number;
  /** Progress of the removal of a member. */
  removal(observed: ObservedService, node: NodeSpec | undefined): StepProgress;
  /** Milliseconds until members must be checked again; null if there is no reason to. */
  recheckInMs(service: ManagedServiceObject, observed: ObservedService): number | null;
}
