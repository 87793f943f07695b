import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedService, ServiceStep } from "../reconcile/observed-service.ts";

/** Reason why an operation cannot proceed, as a message for users. */
export interface Fault {
  readonly code: string;
  readonly message: string;
}

/** Progress of an operation: the step that its service waits for. */
export interface StepProgress {
  readonly step: string;
  readonly progressPct: number;
  /** Reason why the step does not proceed, such as a host that does not respond. */
  readonly obstacle?: string;
  /** True if the step waits for an external event without a deadline, so that it never counts as stuck. */
  readonly waits?: true;
}

/** A changed service and its operation, to be written in one transaction. */
export interface ServiceAndOperation {
  readonly after: ManagedServiceObject;
  readonly operation: OperationObject;
}

/**
 * Behavior of the operations of one type that change a service. All functions are called in each round; their result
 * depends only on the observation and the stored objects.
 */
export interface Procedure {
  /** Next steps; empty if nothing can be done but wait. */
  plan(service: ManagedServiceObject, observed: ObservedService, operation?: OperationObject): ServiceStep[];
  progress(service: ManagedServiceObject, observed: ObservedService, operation: OperationObject): StepProgress;
  /** True if the operation is complete; it then succeeds, or fails if it was rolled back. */
  isComplete(service: ManagedServiceObject, observed: ObservedService, operation: OperationObject): boolean;
  /** Reason why the change fails; undefined while it may succeed, and during a rollback. */
  fault(
    observed: ObservedService,
    operation: OperationObject,
    now: number,
    service: ManagedServiceObject,
  ): Fault | undefined;
  /** Writes the rollback into the service, and its reason into the operation. Absent: a fault fails the operation. */
  rollBack?(
    service: ManagedServiceObject,
    operation: OperationObject,
    fault: Fault,
    now: number,
    observed: ObservedService,
  ): ServiceAndOperation;
  /** Error of an operation that was rolled back. */
  rolledBackFault?(operation: OperationObject, service: ManagedServiceObject): Fault | undefined;
  /** Records observed results in the operation. */
  recordResults?(operation: OperationObject, observed: ObservedService): OperationObject;
  /** Changes and events of the service when the operation ends, with any result. */
  onEnd?(
    service: ManagedServiceObject,
    operation: OperationObject,
    now: number,
  ): { readonly after: ManagedServiceObject; readonly events: readonly NewEvent[] };
  /** Advice for users that follows an error of the service; undefined for none. */
  advice?(operation: OperationObject): string | undefined;
  /** Set if the service is in state Upgrading during the operation; absent: it retains its state. */
  readonly upgrade?: Upgrade;
  /** True if the operation starts a service in state Error again. */
  readonly retriesError?: true;
}

/** Operations during which a service is Upgrading. */
export interface Upgrade {
  /**
   * True while the operation upgrades the service: false if it upgrades nothing, has ended, or if clients are admitted
   * to a running service.
   */
  isInFlight(operation: OperationObject | undefined, service: ManagedServiceObject): boolean;
  isComplete(service: ManagedServiceObject, observed: ObservedService, operation: OperationObject | undefined): boolean;
}
