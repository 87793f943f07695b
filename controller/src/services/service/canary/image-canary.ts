import { upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { faultOf, isHealthyOnImage } from "../reconcile/managed-service-plan.ts";
import type { ObservedService } from "../reconcile/observed-service.ts";
import { type ManagedServiceObject, withoutFailoverCandidacy } from "../managed-service.ts";
import type { ImageChange } from "../../maintenance/maintenance-work.ts";
import { type OperationObject, rollingBack, stuckAfterMs } from "#operation/operation.ts";
import type { MaintenanceRecord } from "../../maintenance/maintenance-record.ts";
import type { Fault } from "../procedure/procedure.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { hasOutdatedData } from "./node-image.ts";
import { reasonToRetainData } from "./rollback-plan.ts";
import { maintenanceWorkOf, replacementOf, replacementOutcomeOf, serviceOperations } from "../service-operations.ts";
import { withoutPin } from "../member/rollout-state.ts";

const minuteMs = 60_000;
/** Time after which a failed engine fails its canary: shorter than usual, because clients wait. */
export const engineFailureTimeoutMs = 10_000;
/** Maximum time without progress in a step of an image change. */
const canaryStepTimeoutMs = 3 * minuteMs;
/** Maximum time without progress, and in total, of an upgrade that copies data. */
const dataStepTimeoutMs = 15 * minuteMs;
const dataCanaryTimeoutMs = 6 * 60 * minuteMs;
/** Maximum duration of an image change. It ends, for example, one with an engine that repeatedly starts and exits. */
const canaryTimeoutMs = 15 * minuteMs;

/** The reason why the image or kernel fails its canary; undefined while it may succeed, and during a rollback. */
export function canaryFault(
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
  { spec }: ManagedServiceObject,
): Fault | undefined {
  const replacement = replacementOf(operation);
  if (replacement === undefined || operation?.status.rollback !== undefined) return undefined;
  const changesData = replacement.version !== undefined && upgradesData(spec.databaseType);
  // Clients have been admitted and may have written data that the older version cannot read.
  if (changesData && spec.canary === undefined) return undefined;
  const { deadline, startedAt, step } = operation?.status ?? {};
  const fault = faultOf(observed, undefined, now, engineFailureTimeoutMs);
  if (fault !== undefined) return fault;
  const reordered =
    (operation && maintenanceWorkOf(operation)?.acceptsTextOrder) === true ? undefined : orderFault(observed);
  if (reordered !== undefined) return reordered;
  // The duration is unknown.
  if (deadline == null) return undefined;
  const [stepMs, allMs] = changesData
    ? [dataStepTimeoutMs, dataCanaryTimeoutMs]
    : [canaryStepTimeoutMs, canaryTimeoutMs];
  const isStuck = now - (deadline - stuckAfterMs) > stepMs || now - (startedAt ?? now) > allMs;
  return isStuck
    ? { code: "not_healthy", message: `The service was not healthy in time, at step ${step}.` }
    : undefined;
}

/**
 * The fault of a changed sort order of text. Indexes on text would silently miss rows, so agents report it before the
 * engine counts as running.
 */
function orderFault(observed: ObservedService): Fault | undefined {
  for (const { connected, isCurrent, instance } of observed.nodes) {
    const check = instance?.checks.find(({ name, status }) => name === "collation" && status !== "healthy");
    if (connected && isCurrent && check !== undefined) return { code: "text_order", message: check.reason };
  }
  return undefined;
}

/**
 * Rolls the service back to its old image and kernel: with the snapshot of its data if no client can have written
 * since, otherwise with the current data. The steps are the same as for any image change.
 */
export function rollBack(
  service: ManagedServiceObject,
  operation: OperationObject,
  fault: Fault,
  now: number,
): { after: ManagedServiceObject; operation: OperationObject } {
  const change = replacementOf(operation);
  if (change === undefined) return { after: service, operation };
  const { image, guestKernel, version } = change;
  const { metadata, spec } = service;
  const dataStay = reasonToRetainData(spec.canary);
  // A write fence that was not confirmed before the machines stopped is never confirmed later.
  const canary = spec.canary && { ...spec.canary, writesFenced: spec.canary.writesFenced === true };
  const back = dataStay === undefined ? { dataRolledBack: true as const } : {};
  return {
    after: {
      ...service,
      metadata: nextMetadata(metadata, now),
      spec: {
        ...spec,
        ...(canary && { canary: { ...canary, ...back } }),
        ...(image && { image: image.from }),
        ...(guestKernel && { guestKernel: guestKernel.from }),
        ...(version && { version: version.from }),
        // Pinned replicas already have the image and data that the primary returns to.
        nodes: spec.nodes.map(withoutPin),
        instanceGeneration: spec.instanceGeneration + generationsPerImageChange,
      },
    },
    operation: {
      ...operation,
      status: {
        ...rollingBack(operation, fault, now).status,
        ...(dataStay !== undefined && { outcome: { ...replacementOutcomeOf(operation), dataNotRolledBack: dataStay } }),
      },
    },
  };
}

/** True once the image is healthy under a canary, or if no operation with a canary is in progress. */
export function canAdmitClients(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
): boolean {
  if (service.metadata.deletionRequestedAt !== undefined) return false;
  return replacementOf(operation) === undefined || isHealthyOnImage(service, observed, operation);
}

/**
 * Admits clients. Afterwards the data may contain writes that the snapshot lacks. Replicas with data of the previous
 * version are neither failover candidates nor synchronous standbys until they have copied the data again.
 */
export function admitClients(service: ManagedServiceObject, now: number): ManagedServiceObject {
  const { metadata, spec } = service;
  const { canary: _, ...rest } = spec;
  const leaves = (id: string) => hasOutdatedData(spec, { id });
  return {
    ...service,
    metadata: nextMetadata(metadata, now),
    spec: {
      ...rest,
      nodes: spec.nodes.map((node) => (leaves(node.id) ? withoutFailoverCandidacy(node) : node)),
      ...(spec.syncStandbys && { syncStandbys: spec.syncStandbys.filter((id) => !leaves(id)) }),
      instanceGeneration: spec.instanceGeneration + 1,
    },
  };
}

/** The operation with the outcome of the snapshots, once it is known for every node with a snapshot. */
export function withSnapshotOutcome(operation: OperationObject, observed: ObservedService): OperationObject {
  if (replacementOf(operation) === undefined) return operation;
  const nodes = observed.nodes.filter(({ isReplica, machine }) => !isReplica || machine?.spec.snapshot != null);
  const found = nodes.flatMap(({ machine }) => {
    const snapshot = machine?.status.snapshot;
    return snapshot?.name === operation.metadata.id ? [snapshot] : [];
  });
  const worst =
    found.find(({ outcome }) => outcome === "none") ?? found.find(({ outcome }) => outcome === "taken") ?? found[0];
  if (worst === undefined || found.length < nodes.length) return operation;
  const { outcome, reason } = worst;
  const before = replacementOutcomeOf(operation);
  const stays = outcome === "taken" ? (before?.dataNotRolledBack ?? reason) : reason;
  const snapshot = { outcome, reason: stays };
  return { ...operation, status: { ...operation.status, outcome: { ...before, snapshot } } };
}

/** Generations that an image change takes: one stops the engine, the next starts it with the new image. */
export const generationsPerImageChange = 2;

/** The maintenance record after a failed operation: its image and kernel are recorded as refused. */
export function maintenanceRecordAfter(
  operation: OperationObject,
  before: MaintenanceRecord,
  now: number,
): MaintenanceRecord {
  const { state, error } = operation.status;
  const { image, guestKernel } = serviceOperations.maintenance.workOf(operation) ?? {};
  const refusal = ({ to }: ImageChange) =>
    state === "completed" ? null : { image: to, message: error?.message ?? "", at: now };
  return {
    ...before,
    ...(image && { refused: refusal(image) }),
    ...(guestKernel && { refusedGuestKernel: refusal(guestKernel) }),
  };
}

/** The error of an operation whose image or kernel was rolled back. */
export function rollbackError(operation: OperationObject): Fault | undefined {
  const { rollback } = operation.status;
  const snapshot = replacementOutcomeOf(operation)?.snapshot;
  const { image, guestKernel } = maintenanceWorkOf(operation) ?? {};
  const before = [
    ...(image ? [image.fromVersion || image.from] : []),
    ...(guestKernel ? [kernelName(guestKernel)] : []),
  ];
  if (rollback === undefined || before.length === 0) return undefined;
  const { code, message } = rollback;
  return {
    code: `rolled_back_${code}`,
    message: `${message} The service runs from ${before.join(" and ")} again, with all its data${
      snapshot?.outcome === "restored" ? " as they were before" : ""
    }.`,
  };
}

/** Two kernels of the same version can differ in their boot files. */
function kernelName({ from, fromVersion, toVersion }: ImageChange): string {
  return fromVersion === "" || fromVersion === toVersion ? from : `Linux ${fromVersion}`;
}
