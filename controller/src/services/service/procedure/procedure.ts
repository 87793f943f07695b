import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedService, ServiceStep } from "../observed-service.ts";

/** Why something does not go on, in words that a user can act on. */
export interface Fault {
  readonly code: string;
  readonly message: string;
}

/** Where an operation is, by the step that its service waits for. */
export interface StepProgress {
  readonly step: string;
  readonly progressPct: number;
  /** What keeps the step from going on, such as a host that does not answer. */
  readonly obstacle?: string;
  /** It waits for somebody to do something, for as long as that takes: it is not stuck. */
  readonly waits?: true;
}

/** A service and its operation, as both are to be written. */
export interface Advanced {
  readonly after: ManagedServiceObject;
  readonly operation: OperationObject;
}

/**
 * How operations of one type go, while they have their service. All of it is pure and asked at each look, so it answers by what
 * is observed and by what the objects say, never by what it answered before.
 */
export interface Procedure {
  /** What to do next; empty when only waiting helps. */
  plan(service: ManagedServiceObject, observed: ObservedService, operation?: OperationObject): ServiceStep[];
  progress(service: ManagedServiceObject, observed: ObservedService, operation: OperationObject): StepProgress;
  /** Is all done? Then the operation is completed, or fails when it was rolled back. */
  isReached(service: ManagedServiceObject, observed: ObservedService, operation: OperationObject): boolean;
  /** Why its change does not do; undefined while it may, and while it is being rolled back already. */
  fault(
    observed: ObservedService,
    operation: OperationObject,
    now: number,
    service: ManagedServiceObject,
  ): Fault | undefined;
  /** Writes the way back into the service, and why into the operation's `rollback`. Absent: a fault fails the operation. */
  rollBack?(
    service: ManagedServiceObject,
    operation: OperationObject,
    fault: Fault,
    now: number,
    observed: ObservedService,
  ): Advanced;
  /** What an operation ends with that was rolled back. */
  rolledBackFault?(operation: OperationObject, service: ManagedServiceObject): Fault | undefined;
  /** The operation with what became known of its work. */
  note?(operation: OperationObject, observed: ObservedService): OperationObject;
  /** What its end, however it ended, leaves in the service, and what there is to announce of it. */
  ended?(
    service: ManagedServiceObject,
    operation: OperationObject,
    now: number,
  ): { readonly after: ManagedServiceObject; readonly events: readonly NewEvent[] };
  /** What a user reads beside a fault of the service while it goes on; undefined for nothing. */
  advice?(operation: OperationObject): string | undefined;
  /** The service is Upgrading meanwhile; absent for what is done to a service in the state that it has. */
  readonly upgrade?: Upgrade;
  /** A service in Error is tried again. */
  readonly leavesError?: true;
}

export interface Upgrade {
  /** Some operations of the type upgrade nothing, and none does once it is over, or clients are admitted to a service that runs. */
  isUnderWay(operation: OperationObject | undefined, service: ManagedServiceObject): boolean;
  isDone(service: ManagedServiceObject, observed: ObservedService, operation: OperationObject | undefined): boolean;
}
