import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { MaintenanceWork, Replacement } from "./maintenance-work.ts";
import { type StepRecord, withStep } from "./step-record.ts";
import type { DetailedType, OperationDetails, ReplacementOutcome, WorkOf } from "./operation-details.ts";

/** What is being done. */
export type OperationType = ServiceOperationType | EngineOperationType | BackupOperationType;

/** Of a service: one of them is in progress at a time. Each has a row in services/service/procedure/procedures.ts. */
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

/** Operations inside an engine: these do not hold their service. */
export type EngineOperationType =
  | "create_user"
  | "reset_password"
  | "delete_user"
  | "create_database"
  | "delete_database";
/** Of a service's backups: these do not hold their service either. */
export type BackupOperationType = "backup" | "verify_backup" | "drill";
export type OperationObject = Resource<OperationSpec, OperationStatus>;

export const operationKind = defineKind<OperationObject>("operation", {
  indexes: [operationSubject],
});

/** Index: the operations of one subject, by `subjectKey`. */
export function operationSubject({ spec }: OperationObject): string {
  return subjectKey(spec.subject);
}

export function subjectKey({ kind, id }: Subject): string {
  return `${kind}/${id}`;
}

/** The object that an operation is of: the name of its kind, and its id. */
export interface Subject {
  readonly kind: string;
  readonly id: string;
}

export interface OperationSpec {
  readonly subject: Subject;
  readonly type: OperationType;
  /** The work of its type; read by `workOf`. */
  readonly work?: OperationDetails[DetailedType]["work"];
}

export interface OperationStatus {
  readonly state: "pending" | "running" | "completed" | "failed" | "cancelled";
  /** What users see: the step of the record below, or what keeps it from going on. */
  readonly step: string | null;
  readonly progressPct: number;
  /** How it came to its step; absent before the first one, and in what an older version wrote. */
  readonly steps?: StepRecord;
  readonly startedAt: number | null;
  /**
   * When it counts as stuck; each progress postpones it. Null when it is over, while it waits for an operator, and for
   * a while after the clock jumped.
   */
  readonly deadline: number | null;
  readonly finishedAt: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** A measure of progress: a new text is progress. */
  readonly mark: string;
  /** Sentences for users on what it found and left as it is; absent: none. */
  readonly warnings?: readonly string[];
  /** Why its change is being rolled back; absent while it is not. */
  readonly rollback?: { readonly code: string; readonly message: string };
  /** The outcome of its type's work so far; read by `outcomeOf`. */
  readonly outcome?: OperationDetails[DetailedType]["outcome"];
}

/** No progress for so long means stuck (spec 1, Limits). */
export const stuckAfterMs = 10 * 60_000;

/** An operation that has not begun. */
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

/** The work of an operation of this type; undefined for an operation of another type. */
export function workOf<T extends DetailedType>(
  { spec }: OperationObject,
  type: T,
): OperationDetails[T]["work"] | undefined {
  return spec.type === type ? (spec.work as OperationDetails[T]["work"] | undefined) : undefined;
}

/** The outcome so far of an operation of this type; undefined for an operation of another type. */
function outcomeOf<T extends DetailedType>(
  { spec, status }: OperationObject,
  type: T,
): OperationDetails[T]["outcome"] | undefined {
  return spec.type === type ? status.outcome : undefined;
}

/**
 * Advances an operation. Its steps go forward and its progress never decreases, whatever is observed; only a new mark extends the
 * deadline, and with `waits` there is none. An `obstacle` is shown in place of the step while it lasts.
 */
export function progressed(
  operation: OperationObject,
  progress: { step: string | null; progressPct: number; mark: string; waits?: true; obstacle?: string },
  now: number,
): OperationObject {
  const { status } = operation;
  const steps = withStep(stepsOf(status), progress);
  const progressPct = Math.min(99, Math.max(status.progressPct, progress.progressPct));
  // A deadline that is further away was set before the clock was put back.
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
  // The way back has steps of its own.
  if (steps !== undefined || step === null || rollback !== undefined) return steps;
  return { step, progressPct, passed: [] };
}

/** The operation with these warnings beside those that it has, each once. */
export function warned(operation: OperationObject, warnings: readonly string[]): OperationObject {
  const all = new Set([...(operation.status.warnings ?? []), ...warnings]);
  return all.size === 0 ? operation : { ...operation, status: { ...operation.status, warnings: [...all] } };
}

/** The operation, done. */
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

/** The operation, ended by this error. */
export function failed(
  operation: OperationObject,
  error: { code: string; message: string },
  now: number,
): OperationObject {
  return touched(operation, now, { ...operation.status, state: "failed", error, finishedAt: now, deadline: null });
}

/** The operation, whose change is rolled back for this reason. */
export function rollingBack(
  operation: OperationObject,
  rollback: { readonly code: string; readonly message: string },
  now: number,
): OperationObject {
  const { steps: _, ...status } = operation.status;
  return { ...operation, status: { ...status, rollback, deadline: now + stuckAfterMs } };
}

/**
 * The error of an operation whose change was rolled back; undefined for others. `state`: a sentence on the present
 * state.
 */
export function rolledBackError(
  { status: { rollback } }: OperationObject,
  state: string,
): { code: string; message: string } | undefined {
  return rollback && { code: `rolled_back_${rollback.code}`, message: `${rollback.message} ${state}` };
}

/** The operation, given up for another one. */
export function cancelled(operation: OperationObject, now: number): OperationObject {
  return touched(operation, now, { ...operation.status, state: "cancelled", finishedAt: now, deadline: null });
}

/** Advice to users about a stuck operation, where it is not to restart the service. */
const adviceWhenStuck: Partial<Record<OperationType, string>> = {
  delete: "The deletion goes on by itself as soon as it can.",
};

/** Why an operation counts as stuck; undefined while it progresses. `runs`: whether its service runs. */
export function stuckFault(
  operation: OperationObject | undefined,
  now: number,
  { runs = false }: { readonly runs?: boolean } = {},
): { code: string; message: string } | undefined {
  const deadline = operation?.status.deadline;
  if (operation === undefined || deadline == null || deadline >= now) return undefined;
  const step = operation.status.step ?? "the beginning";
  const otherwise = runs
    ? "The service runs; its nodes' statuses and its health tell what is missing."
    : "Start the service to try again, or delete it.";
  const advice = adviceWhenStuck[operation.spec.type] ?? otherwise;
  return { code: "stuck", message: `No progress for 10 minutes at ${step}. ${advice}` };
}

/**
 * The image and kernel that an unfinished operation puts under its service's data; undefined for every other operation.
 */
export function replacementOf(operation: OperationObject | undefined): Replacement | undefined {
  if (operation === undefined || isOver(operation)) return undefined;
  const { image = null, guestKernel = null } = maintenanceWorkOf(operation) ?? {};
  const version = workOf(operation, "upgrade")?.version;
  return image === null && guestKernel === null ? undefined : { image, guestKernel, ...(version && { version }) };
}

/**
 * The work of an operation that may replace the image under its service's data; undefined for every other operation.
 */
export function maintenanceWorkOf(operation: OperationObject): MaintenanceWork | undefined {
  return workOf(operation, "maintenance") ?? workOf(operation, "upgrade");
}

/** What came of such an operation so far. */
export function replacementOutcomeOf(operation: OperationObject): ReplacementOutcome | undefined {
  return outcomeOf(operation, "maintenance") ?? outcomeOf(operation, "upgrade");
}

/** Has it ended, in whatever way? */
export function isOver(operation: OperationObject): boolean {
  return operation.status.finishedAt !== null;
}

function touched(operation: OperationObject, now: number, status: OperationStatus): OperationObject {
  return { ...operation, metadata: { ...operation.metadata, updatedAt: now }, status };
}
