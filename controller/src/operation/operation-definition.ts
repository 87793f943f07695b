import { contributionPoint } from "#kernel/contribution-point.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { type OperationObject, type OperationOutcome, type Subject, stuckAfterMs } from "./operation.ts";

/** An operation of one type. */
type OperationOf<Type> = OperationObject & { readonly spec: { readonly type: Type } };

/** A type of operations, declared beside the resource that it changes. */
export interface OperationDefinition<Type extends string = string, Work = unknown, Outcome = unknown> {
  readonly type: Type;
  /** The object of the change in the documentation of `Operation.type`, such as "the service". */
  readonly of: string;
  is(operation: OperationObject | undefined): operation is OperationOf<Type>;
  /** The work of an operation of this type; undefined for another type, and for a type without work. */
  workOf(operation: OperationObject): Work | undefined;
  /** The outcome so far of an operation of this type; undefined for another type. */
  outcomeOf(operation: OperationObject): Outcome | undefined;
}

/** Declares a type. `Work` and `Outcome` are details in addition to the fields of all operations; by default none. */
export function defineOperation<const Type extends string, Work = never, Outcome extends OperationOutcome = never>({
  type,
  of,
}: {
  readonly type: Type;
  readonly of: string;
}): OperationDefinition<Type, Work, Outcome> {
  const is = (operation: OperationObject | undefined): operation is OperationOf<Type> => operation?.spec.type === type;
  return {
    type,
    of,
    is,
    workOf: (operation) => (is(operation) ? (operation.spec.work as Work | undefined) : undefined),
    outcomeOf: (operation) => (is(operation) ? (operation.status.outcome as Outcome | undefined) : undefined),
  };
}

/** The types of operations of all systems. */
export const operationTypes = contributionPoint<OperationDefinition>("operation types", { key: ({ type }) => type });

/** The work of operations of a type. */
export type WorkOf<D> = D extends OperationDefinition<string, infer Work> ? Work : never;

/** Creates a pending operation. */
export function newOperation<Definition extends OperationDefinition>(args: {
  id: string;
  subject: Subject;
  organizationId: string;
  type: Definition;
  now: number;
  work?: WorkOf<Definition>;
}): OperationObject {
  const { id, subject, organizationId, type, now, work } = args;
  return {
    metadata: newMetadata(id, now, { name: type.type, organizationId }),
    spec: { subject, type: type.type, ...(work !== undefined && { work }) },
    status: {
      state: "pending",
      step: null,
      progressPct: 0,
      startedAt: null,
      deadline: now + stuckAfterMs,
      finishedAt: null,
      error: null,
      mark: "",
    },
  };
}
