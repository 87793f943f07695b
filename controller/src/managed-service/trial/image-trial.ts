import { faultOf, type ObservedService } from "../managed-service-plan.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ImageChange } from "../../operation/maintenance-work.ts";
import { type OperationObject, replacementOf, stuckAfterMs } from "../../operation/operation.ts";
import type { MaintenanceMemory } from "../maintenance-memory.ts";
import { nextMetadata } from "../../store/resource.ts";
import { whyDataStay } from "./way-back.ts";

const minuteMs = 60_000;
/** Clients wait: an engine that does not come up from another image is given up sooner than one that was well before. */
export const engineMayFailForMs = 10_000;
/** A step of putting another image under a service may go without progress for so long. */
const trialStepMs = 3 * minuteMs;
/** After this it is given up whatever it is at, such as an engine that comes up and ends again and again. */
const trialMs = 15 * minuteMs;

type Fault = { readonly code: string; readonly message: string };

/** Pure: why the image, or the kernel, that is tried does not do; undefined while it may, and when it is being taken back already. */
export function trialFault(
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
): Fault | undefined {
  if (replacementOf(operation) === undefined || operation?.status.takenBack !== undefined) return undefined;
  const { deadline, startedAt, step } = operation?.status ?? {};
  const fault = faultOf(observed, undefined, now, engineMayFailForMs);
  if (fault !== undefined) return fault;
  const reordered = operation?.spec.maintenance?.acceptsTextOrder === true ? undefined : orderFault(observed);
  if (reordered !== undefined) return reordered;
  // Nobody knows for how long it has been at it.
  if (deadline == null) return undefined;
  const isStuck = now - (deadline - stuckAfterMs) > trialStepMs || now - (startedAt ?? now) > trialMs;
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
export function takeBack(
  service: ManagedServiceObject,
  operation: OperationObject,
  fault: Fault,
  now: number,
): { after: ManagedServiceObject; operation: OperationObject } {
  const change = replacementOf(operation);
  if (change === undefined) return { after: service, operation };
  const { image, guestKernel } = change;
  const { metadata, spec } = service;
  const dataStay = whyDataStay(spec.trial);
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
        instanceGeneration: spec.instanceGeneration + generationsOfChange,
      },
    },
    operation: {
      ...operation,
      status: {
        ...operation.status,
        takenBack: fault,
        ...(dataStay !== undefined && { dataStay }),
        deadline: now + stuckAfterMs,
      },
    },
  };
}

/** Pure: clients are let in; from now on the data hold what no snapshot has. */
export function letIn(service: ManagedServiceObject, now: number): ManagedServiceObject {
  const { metadata, spec } = service;
  const { trial: _, ...kept } = spec;
  return {
    ...service,
    metadata: nextMetadata(metadata, now),
    spec: { ...kept, instanceGeneration: spec.instanceGeneration + 1 },
  };
}

/** Pure: the operation with what became of the snapshots, once that is known of every node. */
export function withSnapshot(operation: OperationObject, { nodes }: ObservedService): OperationObject {
  if (replacementOf(operation) === undefined) return operation;
  const found = nodes.flatMap(({ machine }) => {
    const snapshot = machine?.status.snapshot;
    return snapshot?.name === operation.metadata.id ? [snapshot] : [];
  });
  const told =
    found.find(({ outcome }) => outcome === "none") ?? found.find(({ outcome }) => outcome === "taken") ?? found[0];
  if (told === undefined || found.length < nodes.length) return operation;
  const { outcome, reason } = told;
  const stays = outcome === "taken" ? (operation.status.dataStay ?? reason) : reason;
  return { ...operation, status: { ...operation.status, snapshot: { outcome, reason: stays } } };
}

/** One for the stop of the engine, one for its start under the other image. */
export const generationsOfChange = 2;

/** Pure: what the end of an operation leaves to be remembered of the image and the kernel that it brought, if it brought any. */
export function memoryAfter(operation: OperationObject, before: MaintenanceMemory, now: number): MaintenanceMemory {
  const { state, error } = operation.status;
  const { image, guestKernel } = operation.spec.maintenance ?? {};
  const refusal = ({ to }: ImageChange) =>
    state === "completed" ? null : { image: to, message: error?.message ?? "", at: now };
  return {
    ...before,
    ...(image && { refused: refusal(image) }),
    ...(guestKernel && { refusedGuestKernel: refusal(guestKernel) }),
  };
}

/** Pure: what the operation tells of an image, or a kernel, that was taken back. */
export function takenBackError(operation: OperationObject): Fault | undefined {
  const { takenBack, snapshot } = operation.status;
  const { image, guestKernel } = operation.spec.maintenance ?? {};
  const before = [
    ...(image ? [image.fromVersion || image.from] : []),
    ...(guestKernel ? [kernelName(guestKernel)] : []),
  ];
  if (takenBack === undefined || before.length === 0) return undefined;
  const { code, message } = takenBack;
  return {
    code: `taken_back_${code}`,
    message: `${message} The service runs from ${before.join(" and ")} again, with all its data${
      snapshot?.outcome === "restored" ? " as they were before" : ""
    }.`,
  };
}

/** Two kernels of one version differ in what starts the guest. */
function kernelName({ from, fromVersion, toVersion }: ImageChange): string {
  return fromVersion === "" || fromVersion === toVersion ? from : `Linux ${fromVersion}`;
}
