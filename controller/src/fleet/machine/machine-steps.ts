import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { next } from "@holdfast/common/machine.ts";
import { ComputeFailure } from "@holdfast/compute/compute-failure.ts";
import type { ComputeProvider, MachineFacts, MachineSpec } from "@holdfast/compute/compute-provider.ts";
import { requireGuestKernels } from "@holdfast/compute/provider-facets.ts";
import { mintEnrollment } from "#kernel/pki/enrollment.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { removeSnapshot } from "./snapshot-removal.ts";
import { type MachineEvent, machineLifecycle } from "./machine-lifecycle.ts";
import type { MachineStep } from "./machine-plan.ts";
import { performSnapshotStep } from "./machine-snapshot.ts";
import { machineKind, type MachineObject, type MachineStatus } from "./machine.ts";

/** Assigns hosts to machines. */
export interface MachinePlacement {
  /**
   * Writes the host of a machine that has none, before anything is created there. Throws ComputeFailure with the reason
   * if no host has capacity, and ComputePending if a host is joining.
   */
  place(machineId: string, signal: AbortSignal): Promise<void>;
}

export interface MachineStepDeps {
  readonly placement: MachinePlacement;
  readonly provider: ComputeProvider;
  readonly machines: Collection<MachineObject>;
  readonly begin: () => UnitOfWork;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
  readonly installationId: string;
  /** SHA-256 of the authority's certificate in DER, hex. */
  readonly caFingerprint: () => string;
  /** host:port of every controller's listener for agents. */
  readonly controllers: () => readonly string[];
}

/** Time that an engine has for a graceful shutdown. */
export const stopGraceMs = 60_000;

/** Performs one step. A step may be performed again after a crash of the controller. */
export async function performMachineStep(
  step: MachineStep,
  machine: MachineObject,
  deps: MachineStepDeps,
  signal: AbortSignal,
): Promise<void> {
  const { provider } = deps;
  const { id } = machine.metadata;
  switch (step.kind) {
    case "place":
      return deps.placement.place(id, signal);
    case "create": {
      const spec = providerSpec(machine, deps.installationId);
      const admission = await provider.admit(spec, signal);
      if (!admission.admitted) throw new ComputeFailure(admission.reason);
      await provider.create(spec, signal);
      return;
    }
    case "growDisk": {
      // A claimed machine of the warm pool was admitted with the smallest size only.
      const admission = await provider.admit(providerSpec(machine, deps.installationId), signal);
      if (!admission.admitted) throw new ComputeFailure(admission.reason);
      return provider.growDisk(id, step.diskBytes, signal);
    }
    case "resize":
      return provider.resize(id, providerSpec(machine, deps.installationId).plan, signal);
    case "takeSnapshot":
    case "restoreSnapshot":
    case "recordMissingSnapshot":
      return performSnapshotStep(id, step, deps, signal);
    case "removeSnapshot":
      return removeSnapshot(id, step.name, deps, signal);
    case "replaceImage":
      return provider.replaceImage(id, step.image, signal);
    case "replaceGuestKernel":
      return requireGuestKernels(provider).replace(id, step.guestKernel, signal);
    case "recordImage":
      return recordChoice(id, "image", step.image, deps, signal);
    case "recordGuestKernel":
      return recordChoice(id, "guestKernel", step.guestKernel, deps, signal);
    case "start":
      return start(id, "startOrdered", deps, signal);
    case "enroll":
      return start(id, undefined, deps, signal);
    case "stop":
      await writeStatus(id, "stopOrdered", { reason: "", enrollment: null }, deps, signal);
      return provider.stop(id, stopGraceMs, signal);
    case "destroy":
      await writeStatus(id, "destroyOrdered", { reason: "", enrollment: null }, deps, signal);
      return provider.destroy(id, signal);
    case "deleteObject":
      return deleteObject(id, deps, signal);
  }
}

/**
 * Applies the event and the change to the stored status by compare-and-set. Writes nothing if nothing changes, or if
 * the spec's generation is no longer `ofGeneration`.
 */
export async function writeStatus(
  id: string,
  event: MachineEvent | undefined,
  change: Partial<MachineStatus>,
  deps: Pick<MachineStepDeps, "machines" | "begin" | "log">,
  signal: AbortSignal,
  options: { readonly ofGeneration?: number } = {},
): Promise<void> {
  const { ofGeneration } = options;
  await retryConflict(signal, async () => {
    // The cache may lag behind an enrollment of the agent.
    const before = await deps.machines.getCurrent(id, signal);
    if (before === undefined) return;
    if (ofGeneration !== undefined && before.object.metadata.generation !== ofGeneration) return;
    const { status } = before.object;
    const row = event && next(machineLifecycle, status.state, event);
    const after: MachineStatus = { ...status, ...change, state: row?.[2] ?? status.state };
    if (JSON.stringify(after) === JSON.stringify(status)) return;
    const unit = deps.begin();
    unit.update(machineKind, before, { ...before.object, status: after });
    await unit.commit(signal);
    if (row === undefined) return;
    const transition = { machine: id, from: row[0], event: row[1], to: row[2] };
    if (row[3] === "warn") deps.log.warn("machine changed", { ...transition, reason: after.reason });
    else deps.log.info("machine changed", transition);
  });
}

/** Stores the token's hash before the machine gets the token, so that no agent enrolls before its hash is stored. */
async function start(
  id: string,
  event: MachineEvent | undefined,
  deps: MachineStepDeps,
  signal: AbortSignal,
): Promise<void> {
  const { provider, installationId } = deps;
  const { token, enrollment } = mintEnrollment(deps.sealer, deps.clock);
  const facts = await provider.get(id, signal);
  if (facts === undefined) throw new Error(`machine ${id} was destroyed while it was started`);
  const controllers = deps.controllers();
  const caFingerprint = deps.caFingerprint();
  await writeStatus(
    id,
    event,
    { enrollment: { ...enrollment, controllers, caFingerprint }, ...statusAddressesOf(facts), reason: "" },
    deps,
    signal,
  );
  await provider.start(id, { installationId, controllers, caFingerprint, token }, signal);
}

/** Records the image or kernel that the provider chose, so that a machine that is created again has the same. */
async function recordChoice(
  id: string,
  field: "image" | "guestKernel",
  chosen: string,
  deps: MachineStepDeps,
  signal: AbortSignal,
): Promise<void> {
  await retryConflict(signal, async () => {
    const before = await deps.machines.getCurrent(id, signal);
    if (before === undefined || (before.object.spec[field] ?? "") !== "") return;
    const unit = deps.begin();
    unit.update(machineKind, before, { ...before.object, spec: { ...before.object.spec, [field]: chosen } });
    await unit.commit(signal);
  });
}

/** The addresses that the machine's status has. */
export function statusAddressesOf({
  address,
  publicAddress,
}: MachineFacts): Pick<MachineStatus, "address" | "publicAddress"> {
  return { address, publicAddress };
}

async function deleteObject(id: string, deps: MachineStepDeps, signal: AbortSignal): Promise<void> {
  await retryConflict(signal, async () => {
    const before = await deps.machines.getCurrent(id, signal);
    if (before === undefined) return;
    const unit = deps.begin();
    unit.remove(machineKind, before);
    await unit.commit(signal);
    deps.log.info("machine removed", { machine: id });
  });
}

function providerSpec({ metadata, spec }: MachineObject, installationId: string): MachineSpec {
  const { vcpu, memoryBytes, rootBytes, diskBytes, zone, storageTier, software, hostId, image, kind } = spec;
  const { guestKernel = "" } = spec;
  return {
    id: metadata.id,
    ...(hostId !== null && { hostId }),
    installationId,
    plan: { vcpu, memoryBytes, rootBytes },
    diskBytes,
    zone,
    storageTier,
    engine: software.name,
    version: software.version,
    ...(kind !== undefined && { kind }),
    ...(image !== "" && { image }),
    ...(guestKernel !== "" && { guestKernel }),
    ...(spec.owner === null && { ahead: true }),
  };
}
