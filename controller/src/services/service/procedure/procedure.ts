import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedService, ServiceStep } from "../reconcile/observed-service.ts";

/** Reason why an operation cannot proceed, as a message for users. */
export interface Fault {
  readonly code: string;
  readonly message: string;
}

/** Progress of an operation by the step that its service waits for. */
export interface StepProgress {
  readonly step: string;
  readonly progressPct: number;
  /** Reason why the step does not proceed, such as a host that does not answer. */
  readonly obstacle?: string;
  /** The step waits for an external event without a deadline, so it is not stuck. */
  readonly waits?: true;
}

/** A service and its operation, as they are to be written. */
export interface ServiceAndOperation {
  readonly after: ManagedServiceObject;
  readonly operation: OperationObject;
}

/**
 * Behavior of operations of one type that change a whole service. All functions are pure and called in each round:
 * their result depends on the observation and the stored objects only.
 */
export interface Procedure {
  /** Next steps; empty if only waiting helps. */
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
  /** Changes and events of the service when the operation ends, whatever its result. */
  onEnd?(
    service: ManagedServiceObject,
    operation: OperationObject,
    now: number,
  ): { readonly after: ManagedServiceObject; readonly events: readonly NewEvent[] };
  /** Advice for users beside an error of the service; undefined for none. */
  advice?(operation: OperationObject): string | undefined;
  /** The service is Upgrading meanwhile; absent: it retains its state. */
  readonly upgrade?: Upgrade;
  /** The operation starts a service in Error again. */
  readonly retriesError?: true;
}

/** Operations during which a service is Upgrading. */
export interface Upgrade {
  /**
   * False for operations of the type that upgrade nothing, for ended ones, and once clients are admitted to a running
   * service.
   */
  isInFlight(operation: OperationObject | undefined, service: ManagedServiceObject): boolean;
  isComplete(service: ManagedServiceObject, observed: ObservedService, operation: OperationObject | undefined): boolean;
}
