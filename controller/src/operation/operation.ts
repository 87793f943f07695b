import { contributionPoint } from "#kernel/contribution-point.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { MaintenanceWork, Replacement } from "./maintenance-work.ts";
import type { DetailedType, OperationDetails, ReplacementOutcome, WorkOf } from "./operation-details.ts";

/** Type of an operation. */
export type OperationType = ServiceOperationType | EngineOperationType | BackupOperationType;

/** Operations of a service, one at a time. Each has a row in services/service/procedure/procedures.ts. */
export type ServiceOperationType =
  | "create"
  | "start"
  | "stop"
  | "restart"
  | "configure"
  | "maintenance"
  | "upgrade"
  | "add_node"
  | "remove_node"
  | "move_node"
  | "failover"
  | "resize"
  | "expand"
  | "delete";

/** Operations inside an engine: they may run concurrently with others of their service. */
export type EngineOperationType =
  | "create_user"
  | "reset_password"
  | "delete_user"
  | "create_database"
  | "delete_database";
/** Operations of a service's backups: they may also run concurrently. */
export type BackupOperationType = "backup" | "verify_backup" | "drill";
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

/** Objects of one kind that operations are about. */
export interface SubjectKind {
  /** Name of the kind. */
  readonly kind: string;
  /** Undefined for a deleted object. */
  get(id: string): unknown;
}

export const operationSubjects = contributionPoint<SubjectKind>("subjects of operations", { key: ({ kind }) => kind });

export interface OperationSpec {
  readonly subject: Subject;
  readonly type: OperationType;
  /** Details for its type; read by `workOf`. */
  readonly work?: OperationDetails[DetailedType]["work"];
}

export interface OperationStatus {
  readonly state: "pending" | "running" | "completed" | "failed" | "cancelled";
  /** For users: the current step, or the obstacle that blocks it. */
  readonly step: string | null;
  readonly progressPct: number;
  /** Steps so far; absent before the first one. */
  readonly steps?: StepRecord;
  readonly startedAt: number | null;
  /**
   * Time after which it counts as stuck, in milliseconds since 1970; each progress postpones it. Null when it has
   * ended, while it waits for an operator, and for a while after a clock jump.
   */
  readonly deadline: number | null;
  readonly finishedAt: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Measure of progress, such as "3/7 copied": any new text counts as progress. */
  readonly mark: string;
  /** Sentences for users about what it left unchanged; absent: none. */
  readonly warnings?: readonly string[];
  /** Reason of the rollback in progress; absent: none. */
  readonly rollback?: { readonly code: string; readonly message: string };
  /** Outcome so far, for its type; read by `outcomeOf`. */
  readonly outcome?: OperationDetails[DetailedType]["outcome"];
}

/** Time without progress after which an operation counts as stuck (spec 1, Limits). */
export const stuckAfterMs = 10 * 60_000;

/** A pending operation. */
export function newOperation<T extends OperationType>(args: {
  id: string;
  subject: Subject;
  organizationId: string;
  type: T;
  now: number;
  work?: WorkOf<T>;
}): OperationObject {
  const { id, subject, organizationId, type, now, work } = args;
  return {
    metadata: newMetadata(id, now, { name: type, organizationId }),
    spec: { subject, type, ...(work && { work }) },
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

/** The work of an operation of this type; undefined for another type. */
export function workOf<T extends DetailedType>(
  { spec }: OperationObject,
  type: T,
): OperationDetails[T]["work"] | undefined {
  return spec.type === type ? (spec.work as OperationDetails[T]["work"] | undefined) : undefined;
}

/** The outcome so far of an operation of this type; undefined for another type. */
function outcomeOf<T extends DetailedType>(
  { spec, status }: OperationObject,
  type: T,
): OperationDetails[T]["outcome"] | undefined {
  return spec.type === type ? status.outcome : undefined;
}

/**
 * Advances an operation. Steps only go forward and progress never decreases, whatever is observed. Only a new mark
 * extends the deadline; with `waits` there is none. An `obstacle` is shown instead of the step while it lasts.
 */
export function progressed(
  operation: OperationObject,
  progress: { step: string | null; progressPct: number; mark: string; waits?: true; obstacle?: string },
  now: number,
): OperationObject {
  const { status } = operation;
  const steps = withStep(stepsOf(status), progress);
  const progressPct = Math.min(99, Math.max(status.progressPct, progress.progressPct));
  // A deadline that is further away was set before the clock was set back.
  const isBeyond = status.deadline === null || status.deadline > now + stuckAfterMs;
  const moved = progress.mark !== status.mark || progressPct > status.progressPct;
  return touched(operation, now, {
    ...status,
    state: "running",
    step: progress.obstacle ?? steps?.step ?? null,
    ...(steps && { steps }),
    progressPct,
    startedAt: status.startedAt ?? now,
    deadline: progress.waits ? null : moved || isBeyond ? now + stuckAfterMs : status.deadline,
    mark: progress.mark,
  });
}

function stepsOf({ steps, step, progressPct, rollback }: OperationStatus): StepRecord | undefined {
  // A rollback has steps of its own.
  if (steps !== undefined || step === null || rollback !== undefined) return steps;
  return { step, progressPct, passed: [] };
}

/** The operation with additional warnings, without duplicates. */
export function warned(operation: OperationObject, warnings: readonly string[]): OperationObject {
  const all = new Set([...(operation.status.warnings ?? []), ...warnings]);
  return all.size === 0 ? operation : { ...operation, status: { ...operation.status, warnings: [...all] } };
}

/** The operation as completed. */
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

/** The operation as failed with this error. */
export function failed(
  operation: OperationObject,
  error: { code: string; message: string },
  now: number,
): OperationObject {
  return touched(operation, now, { ...operation.status, state: "failed", error, finishedAt: now, deadline: null });
}

/** The operation while its change is rolled back for this reason. */
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

/** The operation as canceled in favor of another one. */
export function cancelled(operation: OperationObject, now: number): OperationObject {
  return touched(operation, now, { ...operation.status, state: "cancelled", finishedAt: now, deadline: null });
}

/** Advice to users about a stuck operation, by type; the default is to start the service again. */
const adviceWhenStuck: Partial<Record<OperationType, string>> = {
  delete: "The deletion continues by itself as soon as it can.",
};

/** The error of a stuck operation; undefined while it progresses. `runs`: whether its service runs. */
export function stuckFault(
  operation: OperationObject | undefined,
  now: number,
  { runs = false }: { readonly runs?: boolean } = {},
): { code: string; message: string } | undefined {
  const deadline = operation?.status.deadline;
  if (operation === undefined || deadline == null || deadline >= now) return undefined;
  const step = operation.status.step ?? "the beginning";
  const otherwise = runs
    ? "The service runs; the status of its nodes and its health show what is missing."
    : "Start the service to try again, or delete it.";
  const advice = adviceWhenStuck[operation.spec.type] ?? otherwise;
  return { code: "stuck", message: `No progress for 10 minutes at ${step}. ${advice}` };
}

/** The image and kernel that an unfinished operation puts under its service's data; undefined for other operations. */
export function replacementOf(operation: OperationObject | undefined): Replacement | undefined {
  if (operation === undefined || isOver(operation)) return undefined;
  const { image = null, guestKernel = null } = maintenanceWorkOf(operation) ?? {};
  const version = workOf(operation, "upgrade")?.version;
  return image === null && guestKernel === null ? undefined : { image, guestKernel, ...(version && { version }) };
}

/** The work of an operation that may replace the image under its service's data; undefined for other operations. */
export function maintenanceWorkOf(operation: OperationObject): MaintenanceWork | undefined {
  return workOf(operation, "maintenance") ?? workOf(operation, "upgrade");
}

/** Outcome so far of such an operation. */
export function replacementOutcomeOf(operation: OperationObject): ReplacementOutcome | undefined {
  return outcomeOf(operation, "maintenance") ?? outcomeOf(operation, "upgrade");
}

/** True if it has ended, with any result. */
export function isOver(operation: OperationObject): boolean {
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

/** Step and progress as observed now. They may fall back: an agent restarts, a DNS name is published again. */
interface ObservedStep {
  readonly step: string | null;
  readonly progressPct: number;
}

/**
 * Pure: the record with the observed step. Steps only go forward: a step that has passed is not entered again, and no
 * step is entered with less progress than the current one has. An observation that falls back leaves the record as is.
 */
function withStep(record: StepRecord | undefined, { step, progressPct }: ObservedStep): StepRecord | undefined {
  if (step === null) return record;
  if (record === undefined) return { step, progressPct, passed: [] };
  if (progressPct < record.progressPct || record.passed.includes(step)) return record;
  if (step !== record.step) return { step, progressPct, passed: [...record.passed, record.step] };
  return progressPct === record.progressPct ? record : { ...record, progressPct };
}
