import type { MaintenanceWork, Replacement } from "./maintenance-work.ts";
import type { DataSnapshot } from "../machine/data-snapshot.ts";
import { newMetadata, type Resource } from "../store/resource.ts";

/** What is being done. */
export type OperationType =
  | "create"
  | "start"
  | "stop"
  | "restart"
  | "configure"
  | "maintenance"
  | "delete"
  | EngineOperationType;

/** Of what is inside an engine: these do not hold their service. */
export type EngineOperationType =
  | "create_user"
  | "reset_password"
  | "delete_user"
  | "create_database"
  | "delete_database";
export type OperationObject = Resource<OperationSpec, OperationStatus>;

export interface OperationSpec {
  readonly serviceId: string;
  readonly type: OperationType;
  /** Instance generation that ends it when the machines are held to it. */
  readonly instanceGeneration: number;
  /** Of a maintenance operation only. */
  readonly maintenance?: MaintenanceWork;
}

export interface OperationStatus {
  readonly state: "pending" | "running" | "completed" | "failed" | "cancelled";
  readonly step: string | null;
  readonly progressPct: number;
  readonly startedAt: number | null;
  /**
   * When it counts as stuck; each progress moves it on. Null when it is over, while it waits for an operator, and for a while
   * after the clock jumped.
   */
  readonly deadline: number | null;
  readonly finishedAt: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** What progress is measured by: a new text is progress. */
  readonly mark: string;
  /** Why the image or kernel that was tried is being taken back; absent as long as it is not. */
  readonly takenBack?: { readonly code: string; readonly message: string };
  /** Why the data stay as they are though that image is taken back; absent when they go back with it. */
  readonly dataStay?: string;
  /** Of the data as they were before another image; absent until that is known. */
  readonly snapshot?: DataSnapshot;
}

/** No progress for so long means stuck (spec 1, Limits). */
export const stuckAfterMs = 10 * 60_000;

/** An operation that has not begun. */
export function newOperation(args: {
  id: string;
  serviceId: string;
  organizationId: string;
  type: OperationType;
  instanceGeneration: number;
  now: number;
  maintenance?: MaintenanceWork;
}): OperationObject {
  const { id, serviceId, organizationId, type, instanceGeneration, now, maintenance } = args;
  return {
    metadata: newMetadata(id, now, { name: type, organizationId }),
    spec: { serviceId, type, instanceGeneration, ...(maintenance && { maintenance }) },
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

/** Moves an operation on. Progress never goes back, and only a new mark extends the deadline; one that `waits` has none. */
export function progressed(
  operation: OperationObject,
  progress: { step: string | null; progressPct: number; mark: string; waits?: true },
  now: number,
): OperationObject {
  const { status } = operation;
  const progressPct = Math.min(99, Math.max(status.progressPct, progress.progressPct));
  // A deadline that is further away was set before the clock was put back.
  const isBeyond = status.deadline === null || status.deadline > now + stuckAfterMs;
  const moved = progress.mark !== status.mark || progressPct > status.progressPct;
  return touched(operation, now, {
    ...status,
    state: "running",
    step: progress.step,
    progressPct,
    startedAt: status.startedAt ?? now,
    deadline: progress.waits ? null : moved || isBeyond ? now + stuckAfterMs : status.deadline,
    mark: progress.mark,
  });
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

/** The operation, given up for another one. */
export function cancelled(operation: OperationObject, now: number): OperationObject {
  return touched(operation, now, { ...operation.status, state: "cancelled", finishedAt: now, deadline: null });
}

/** Why an operation counts as stuck, or undefined while it moves. */
export function stuckFault(
  operation: OperationObject | undefined,
  now: number,
): { code: string; message: string } | undefined {
  const deadline = operation?.status.deadline;
  if (deadline == null || deadline >= now) return undefined;
  const step = operation?.status.step ?? "the beginning";
  return {
    code: "stuck",
    message: `No progress for 10 minutes at ${step}. ${
      operation?.spec.type === "delete"
        ? "The deletion goes on by itself as soon as it can."
        : "Start the service to try again, or delete it."
    }`,
  };
}

/** The image, and the kernel, that it puts under its service's data, as long as it is at it; undefined for every other operation. */
export function replacementOf(operation: OperationObject | undefined): Replacement | undefined {
  if (operation === undefined || isOver(operation)) return undefined;
  const { image = null, guestKernel = null } = operation.spec.maintenance ?? {};
  return image === null && guestKernel === null ? undefined : { image, guestKernel };
}

/** Has it ended, in whatever way? */
export function isOver(operation: OperationObject): boolean {
  return operation.status.finishedAt !== null;
}

function touched(operation: OperationObject, now: number, status: OperationStatus): OperationObject {
  return { ...operation, metadata: { ...operation.metadata, updatedAt: now }, status };
}
