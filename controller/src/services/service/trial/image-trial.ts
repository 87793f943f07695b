import { upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { faultOf, isWellUnderImage } from "../managed-service-plan.ts";
import type { ObservedService } from "../observed-service.ts";
import { type ManagedServiceObject, withoutVote } from "../managed-service.ts";
import { withoutKept } from "../member/turns.ts";
import type { ImageChange } from "#operation/maintenance-work.ts";
import {
  maintenanceWorkOf,
  type OperationObject,
  replacementOf,
  replacementOutcomeOf,
  rollingBack,
  stuckAfterMs,
  workOf,
} from "#operation/operation.ts";
import type { MaintenanceMemory } from "../maintenance-memory.ts";
import type { Fault } from "../procedure/procedure.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { isOutdated } from "./other-image.ts";
import { reasonToKeepData } from "./way-back.ts";

const minuteMs = 60_000;
/** Clients wait: an engine that does not come up from another image is given up sooner than one that was well before. */
export const engineMayFailForMs = 10_000;
/** A step of putting another image under a service may go without progress for so long. */
const trialStepMs = 3 * minuteMs;
/** Data that are copied and upgraded take longer, in all and until anything is told of it. */
const dataStepMs = 15 * minuteMs;
const dataTrialMs = 6 * 60 * minuteMs;
/** After this it is given up whatever it is at, such as an engine that comes up and ends again and again. */
const trialMs = 15 * minuteMs;

/** Pure: why the image, or the kernel, that is tried does not do; undefined while it may, and when it is being rolled back already. */
export function trialFault(
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
  { spec }: ManagedServiceObject,
): Fault | undefined {
  const replacement = replacementOf(operation);
  if (replacement === undefined || operation?.status.rollback !== undefined) return undefined;
  const changesData = replacement.version !== undefined && upgradesData(spec.databaseType);
  // Clients have written what the older version does not read.
  if (changesData && spec.trial === undefined) return undefined;
  const { deadline, startedAt, step } = operation?.status ?? {};
  const fault = faultOf(observed, undefined, now, engineMayFailForMs);
  if (fault !== undefined) return fault;
  const reordered =
    (operation && maintenanceWorkOf(operation)?.acceptsTextOrder) === true ? undefined : orderFault(observed);
  if (reordered !== undefined) return reordered;
  // Nobody knows for how long it has been at it.
  if (deadline == null) return undefined;
  const [stepMs, allMs] = changesData ? [dataStepMs, dataTrialMs] : [trialStepMs, trialMs];
  const isStuck = now - (deadline - stuckAfterMs) > stepMs || now - (startedAt ?? now) > allMs;
  return isStuck ? { code: "not_healthy", message: `It was not healthy in time; it was at ${step}.` } : undefined;
}

/** Indexes over text would miss rows without a word: agents tell so before they call the engine running. */
function orderFault(observed: ObservedService): Fault | undefined {
  for (const { connected, isCurrent, instance } of observed.nodes) {
    const check = instance?.checks.find(({ name, status }) => name === "collation" && status !== "healthy");
    if (connected && isCurrent && check !== undefined) return { code: "text_order", message: check.reason };
  }
  return undefined;
}

/**
 * Pure: the service is to run from its old image and kernel again, over the data as they were before it was tried where nobody can have
 * written since, and over the same data elsewhere. The same steps lead there.
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
  const dataStay = reasonToKeepData(spec.trial);
  // What was not certain while the machines could be asked never is.
  const trial = spec.trial && { ...spec.trial, sealed: spec.trial.sealed === true };
  const back = dataStay === undefined ? { dataBack: true as const } : {};
  return {
    after: {
      ...service,
      metadata: nextMetadata(metadata, now),
      spec: {
        ...spec,
        ...(trial && { trial: { ...trial, ...back } }),
        ...(image && { image: image.from }),
        ...(guestKernel && { guestKernel: guestKernel.from }),
        ...(version && { version: version.from }),
        // Replicas have the image and the data that the primary goes back to.
        nodes: spec.nodes.map(withoutKept),
        instanceGeneration: spec.instanceGeneration + generationsOfChange,
      },
    },
    operation: {
      ...operation,
      status: {
        ...rollingBack(operation, fault, now).status,
        ...(dataStay !== undefined && { outcome: { ...replacementOutcomeOf(operation), dataStay } }),
      },
    },
  };
}

/** While an image is tried, once it is well; afterwards nobody has a reason to keep clients out. */
export function mayAdmitClients(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
): boolean {
  if (service.metadata.deletionRequestedAt !== undefined) return false;
  return replacementOf(operation) === undefined || isWellUnderImage(service, observed, operation);
}

/**
 * Pure: clients are admitted; from now on the data hold what no snapshot has. Replicas that keep data of before have none of it: nobody
 * is named after the primary, and in mode `sync` no commit waits, until one has them anew.
 */
export function admitClients(service: ManagedServiceObject, now: number): ManagedServiceObject {
  const { metadata, spec } = service;
  const { trial: _, ...kept } = spec;
  const leaves = (id: string) => isOutdated(spec, { id });
  return {
    ...service,
    metadata: nextMetadata(metadata, now),
    spec: {
      ...kept,
      nodes: spec.nodes.map((node) => (leaves(node.id) ? withoutVote(node) : node)),
      ...(spec.syncStandbys && { syncStandbys: spec.syncStandbys.filter((id) => !leaves(id)) }),
      instanceGeneration: spec.instanceGeneration + 1,
    },
  };
}

/** Pure: the operation with what became of the snapshots, once that is known of every node that was to have one. */
export function withSnapshot(operation: OperationObject, observed: ObservedService): OperationObject {
  if (replacementOf(operation) === undefined) return operation;
  const nodes = observed.nodes.filter(({ isReplica, machine }) => !isReplica || machine?.spec.snapshot != null);
  const found = nodes.flatMap(({ machine }) => {
    const snapshot = machine?.status.snapshot;
    return snapshot?.name === operation.metadata.id ? [snapshot] : [];
  });
  const told =
    found.find(({ outcome }) => outcome === "none") ?? found.find(({ outcome }) => outcome === "taken") ?? found[0];
  if (told === undefined || found.length < nodes.length) return operation;
  const { outcome, reason } = told;
  const before = replacementOutcomeOf(operation);
  const stays = outcome === "taken" ? (before?.dataStay ?? reason) : reason;
  const snapshot = { outcome, reason: stays };
  return { ...operation, status: { ...operation.status, outcome: { ...before, snapshot } } };
}

/** One for the stop of the engine, one for its start under the other image. */
export const generationsOfChange = 2;

/** Pure: what the end of an operation leaves to be remembered of the image and the kernel that it brought, if it brought any. */
export function memoryAfter(operation: OperationObject, before: MaintenanceMemory, now: number): MaintenanceMemory {
  const { state, error } = operation.status;
  const { image, guestKernel } = workOf(operation, "maintenance") ?? {};
  const refusal = ({ to }: ImageChange) =>
    state === "completed" ? null : { image: to, message: error?.message ?? "", at: now };
  return {
    ...before,
    ...(image && { refused: refusal(image) }),
    ...(guestKernel && { refusedGuestKernel: refusal(guestKernel) }),
  };
}

/** Pure: what the operation tells of an image, or a kernel, that was rolled back. */
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

/** Two kernels of one version differ in what starts the guest. */
function kernelName({ from, fromVersion, toVersion }: ImageChange): string {
  return fromVersion === "" || fromVersion === toVersion ? from : `Linux ${fromVersion}`;
}
