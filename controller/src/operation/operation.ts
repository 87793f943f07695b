import { contributionPoint } from "#kernel/contribution-point.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Resource, Stored } from "#kernel/store/resource.ts";
import type { Collection } from "#kernel/store/collection.ts";

export type OperationObject = Resource<OperationSpec, OperationStatus>;

export const operationKind = defineKind<OperationObject>("operation", {
  storedNames: { "spec.work.inRollout": "inTurn", "status.outcome.dataNotRolledBack": "dataStay" },
  indexes: [operationSubject],
});

/** Index: the operations of one subject, by `subjectKey`. */
export function operationSubject({ spec }: OperationObject): string {
  return subjectKey(spec.subject);
}

export function subjectKey({ kind, id }: Subject): string {
  return `${kind}/${id}`;
}

/** The object of an operation: the name of its kind, and its id. */
export interface Subject {
  readonly kind: string;
  readonly id: string;
}

/** A kind whose objects can be subjects of operations. */
export interface SubjectKind {
  /** Name of the kind. */
  readonly kind: string;
  /** The object; undefined if it is deleted. */
  get(id: string): Stored<Resource<unknown, unknown>> | undefined;
  /** Kind of owner whose paths have the object's operations; the name of this kind by default. */
  ownerKindOf?(id: string): string;
}

export const operationSubjects = contributionPoint<SubjectKind>("subjects of operations", { key: ({ kind }) => kind });

export interface OperationSpec {
  readonly subject: Subject;
  /** Name of its type (operation-definition.ts). */
  readonly type: string;
  /** Details for its type; read by the type's `workOf`. */
  readonly work?: unknown;
}

export interface OperationStatus {
  readonly state: "pending" | "running" | "completed" | "failed" | "cancelled";
  /** The current step, or the obstacle that blocks it, as a text for users. */
  readonly step: string | null;
  readonly progressPct: number;
  /** Steps so far; absent before the first one. */
  readonly steps?: StepRecord;
  readonly startedAt: number | null;
  /**
   * Time after which it counts as stuck, in milliseconds since 1970; each progress postpones it. Null if it has ended,
   * waits for an operator, or the clock jumped recently.
   */
  readonly deadline: number | null;
  readonly finishedAt: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Measure of progress, such as `3/7 copied`: each different text counts as progress. */
  readonly mark: string;
  /** Sentences for users about parts that it did not change; absent: none. */
  readonly warnings?: readonly string[];
  /** Reason of the rollback in progress; absent: none. */
  readonly rollback?: { readonly code: string; readonly message: string };
  /** Outcome so far; additional members depend on the type, whose `outcomeOf` reads them. */
  readonly outcome?: OperationOutcome & Readonly<Record<string, unknown>>;
}

/** The part of an outcome that all types of operations share. */
export interface OperationOutcome {
  /** Outcome of the snapshot before the change; absent until it is known. */
  readonly snapshot?: DataSnapshot;
}

/** Time without progress after which an operation counts as stuck (spec 1, Limits). */
export const stuckAfterMs = 10 * 60_000;

/**
 * Advances an operation. Steps and progress never go back, even if the observation does. A new mark or more progress
 * extends the deadline; with `waits` there is none. An `obstacle` replaces the text of the step.
 */
export function progressed(
  operation: OperationObject,
  progress: { step: string | null; progressPct: number; mark: string; waits?: true; obstacle?: string },
  now: number,
): OperationObject {
  const { status } = operation;
  const steps = withStep(stepsOf(status), progress);
  const progressPct = Math.min(99, Math.max(status.progressPct, progress.progressPct));
  // A deadline that is more than 10 minutes ahead was set before the clock was set back.
  const isInvalid = status.deadline === null || status.deadline > now + stuckAfterMs;
  const hasProgress = progress.mark !== status.mark || progressPct > status.progressPct;
  return touched(operation, now, {
    ...status,
    state: "running",
    step: progress.obstacle ?? steps?.step ?? null,
    ...(steps && { steps }),
    progressPct,
    startedAt: status.startedAt ?? now,
    deadline: progress.waits ? null : hasProgress || isInvalid ? now + stuckAfterMs : status.deadline,
    mark: progress.mark,
  });
}

function stepsOf({ steps, step, progressPct, rollback }: OperationStatus): StepRecord | undefined {
  // A rollback begins a new sequence of steps.
  if (steps !== undefined || step === null || rollback !== undefined) return steps;
  return { step, progressPct, passed: [] };
}

/** The operation with additional warnings, without duplicates. */
export function warned(operation: OperationObject, warnings: readonly string[]): OperationObject {
  const all = new Set([...(operation.status.warnings ?? []), ...warnings]);
  return all.size === 0 ? operation : { ...operation, status: { ...operation.status, warnings: [...all] } };
}

/** The operation in state completed. */
export function completed(operation: OperationObject, now: number): OperationObject {
  const { status } = operation;
  const startedAt = status.startedAt ?? now;
  return touched(operation, now, {
    ...status,
    state: "completed",
    progressPct: 100,
    startedAt,
    finishedAt: now,
    deadline: null,
  });
}

/** The operation in state failed with this error. */
export function failed(
  operation: OperationObject,
  error: { code: string; message: string },
  now: number,
): OperationObject {
  return touched(operation, now, { ...operation.status, state: "failed", error, finishedAt: now, deadline: null });
}

/** The operation during the rollback of its change, with the reason. */
export function rollingBack(
  operation: OperationObject,
  rollback: { readonly code: string; readonly message: string },
  now: number,
): OperationObject {
  const { steps: _, ...status } = operation.status;
  return { ...operation, status: { ...status, rollback, deadline: now + stuckAfterMs } };
}

/**
 * The error of an operation whose change was rolled back; undefined for others. `state`: a sentence about the current
 * state.
 */
export function rolledBackError(
  { status: { rollback } }: OperationObject,
  state: string,
): { code: string; message: string } | undefined {
  return rollback && { code: `rolled_back_${rollback.code}`, message: `${rollback.message} ${state}` };
}

/** The operation in state `cancelled`, because another one replaces it. */
export function canceled(operation: OperationObject, now: number): OperationObject {
  return touched(operation, now, { ...operation.status, state: "cancelled", finishedAt: now, deadline: null });
}

/** True if the operation has ended, successfully or not. */
export function isFinished(operation: OperationObject): boolean {
  return operation.status.finishedAt !== null;
}

function touched(operation: OperationObject, now: number, status: OperationStatus): OperationObject {
  return { ...operation, metadata: { ...operation.metadata, updatedAt: now }, status };
}

/** The steps of an operation so far; absent before the first one. */
interface StepRecord {
  readonly step: string;
  /** The highest progress of the operation during this step. */
  readonly progressPct: number;
  /** Earlier steps, in order. */
  readonly passed: readonly string[];
}

/** The observed step and progress. They may go back, such as after the restart of an agent. */
interface ObservedStep {
  readonly step: string | null;
  readonly progressPct: number;
}

/**
 * The record with the observed step. A step that has passed is not entered again, and no step is entered with less
 * progress than the current one has: such an observation leaves the record unchanged.
 */
function withStep(record: StepRecord | undefined, { step, progressPct }: ObservedStep): StepRecord | undefined {
  if (step === null) return record;
  if (record === undefined) return { step, progressPct, passed: [] };
  if (progressPct < record.progressPct || record.passed.includes(step)) return record;
  if (step !== record.step) return { step, progressPct, passed: [...record.passed, record.step] };
  return progressPct === record.progressPct ? record : { ...record, progressPct };
}

/**
 * The operation that an object names. Both are written in one transaction but arrive by two watches, so an operation
 * that the collection lacks is read from the store. Otherwise a second operation could start, and the first would never
 * end.
 */
export async function findOperation(
  operations: Collection<OperationObject>,
  id: string | null,
  signal: AbortSignal,
): Promise<Stored<OperationObject> | undefined> {
  return id === null ? undefined : (operations.get(id) ?? operations.getCurrent(id, signal));
}

/** Outcome of the snapshot of the data before an operation; `reason` is empty except for `none`. */
export interface DataSnapshot {
  readonly outcome: "taken" | "none" | "restored";
  readonly reason: string;
}
