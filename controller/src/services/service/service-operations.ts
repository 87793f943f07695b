import { type DataSnapshot, isFinished, type OperationObject } from "#operation/operation.ts";
import { defineOperation } from "#operation/operation-definition.ts";
import type { MaintenanceWork, Replacement, UpgradeWork } from "../maintenance/maintenance-work.ts";

/** Size of a service: plan and storage that a user chose. */
export interface ServiceSize {
  readonly planName: string;
  readonly storageSizeGb: number;
}

export interface SizeChange {
  readonly from: ServiceSize;
  readonly to: ServiceSize;
}

/** The node that is added, removed or moved, or that becomes the primary, and others that are added with it. */
export interface NodeWork {
  /** Empty: the system chooses the replacement of `from`. */
  readonly nodeId: string;
  /** In a failover: the failed primary. In a move: the replaced node. */
  readonly from?: string;
  /** In an addition of several nodes: the nodes besides `nodeId`. Absent: none. */
  readonly otherIds?: readonly string[];
}

/** Outcome for the data of a change of image or kernel. */
export interface ReplacementOutcome {
  /** Reason why the data were not rolled back with the image; absent if they were. */
  readonly dataNotRolledBack?: string;
  /** Outcome of the snapshot before the change; absent until it is known. */
  readonly snapshot?: DataSnapshot;
}

const of = "the service";

/** Operations of a service; one at a time. Each has a row in procedure/procedures.ts. */
export const serviceOperations = {
  create: defineOperation({ type: "create", of }),
  start: defineOperation({ type: "start", of }),
  stop: defineOperation({ type: "stop", of }),
  restart: defineOperation({ type: "restart", of }),
  configure: defineOperation({ type: "configure", of }),
  maintenance: defineOperation<"maintenance", MaintenanceWork, ReplacementOutcome>({ type: "maintenance", of }),
  upgrade: defineOperation<"upgrade", UpgradeWork, ReplacementOutcome>({ type: "upgrade", of }),
  add_node: defineOperation<"add_node", NodeWork>({ type: "add_node", of }),
  remove_node: defineOperation<"remove_node", NodeWork>({ type: "remove_node", of }),
  move_node: defineOperation<"move_node", NodeWork>({ type: "move_node", of }),
  failover: defineOperation<"failover", NodeWork>({ type: "failover", of }),
  resize: defineOperation<"resize", SizeChange>({ type: "resize", of }),
  expand: defineOperation<"expand", SizeChange>({ type: "expand", of }),
  delete: defineOperation({ type: "delete", of }),
} as const;

/** Operations on members. Their failure does not fail the service. */
export const memberOperations = [
  serviceOperations.add_node,
  serviceOperations.remove_node,
  serviceOperations.move_node,
  serviceOperations.failover,
] as const;

export type ServiceOperationType = keyof typeof serviceOperations;

/** The image and kernel that an unfinished operation changes; undefined for other operations. */
export function replacementOf(operation: OperationObject | undefined): Replacement | undefined {
  if (operation === undefined || isFinished(operation)) return undefined;
  const { image = null, guestKernel = null } = maintenanceWorkOf(operation) ?? {};
  const version = serviceOperations.upgrade.workOf(operation)?.version;
  return image === null && guestKernel === null ? undefined : { image, guestKernel, ...(version && { version }) };
}

/** The work of an operation that may change the image; undefined for other operations. */
export function maintenanceWorkOf(operation: OperationObject): MaintenanceWork | undefined {
  return serviceOperations.maintenance.workOf(operation) ?? serviceOperations.upgrade.workOf(operation);
}

/** Outcome, so far, of an operation that changes image or kernel; undefined for other operations. */
export function replacementOutcomeOf(operation: OperationObject): ReplacementOutcome | undefined {
  return serviceOperations.maintenance.outcomeOf(operation) ?? serviceOperations.upgrade.outcomeOf(operation);
}

/** The error of a stuck operation; undefined while it progresses. `runs`: true if its service is Running. */
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
  const advice = serviceOperations.delete.is(operation)
    ? "The deletion continues by itself as soon as it can."
    : otherwise;
  return { code: "stuck", message: `No progress for 10 minutes at ${step}. ${advice}` };
}
