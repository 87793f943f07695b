import { HoldfastError } from "@holdfast/common/errors.ts";
import { hostKind, isBounded } from "../host/host.ts";
import { growthRefusal } from "./growth-refusal.ts";
import { type HostRoomDeps, takeRoom } from "./host-room.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { machineKind, type MachineObject, type MachineSize } from "../machine/machine.ts";

export interface MachineResizeDeps extends HostRoomDeps {
  readonly machines: Pick<Collection<MachineObject>, "fresh" | "reached" | "values">;
}

/**
 * Puts a machine's new size, and the room for it on its host, into the caller's transaction: promised as for a new
 * machine, so of two that want a host's last room one gets a Conflict, looks again, and is refused. The reconciler
 * brings the machine to that size. Throws NOT_POSSIBLE with the host's shortage and a remedy, OBJECT_NOT_FOUND, and
 * WRONG_STATE for a machine
 */
export async function resizeMachine(
  machineId: string,
  size: MachineSize,
  unit: UnitOfWork,
  deps: MachineResizeDeps,
  signal?: AbortSignal,
): Promise<void> {
  const machine = await deps.machines.fresh(machineId, signal);
  if (machine === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `There is no machine ${machineId}.`);
  const { metadata, spec } = machine.object;
  if (metadata.deletionRequestedAt !== undefined)
    throw new HoldfastError("WRONG_STATE", `Machine ${machineId} is being removed.`);
  if (size.diskBytes < spec.diskBytes)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      "A data disk can only grow. For a smaller one, move the data to a new service.",
    );
  // Where it was not placed yet, its new size is what is counted when it is.
  if (spec.hostId !== null) await promise(machine.object, spec.hostId, size, unit, deps, signal);
  const resized = { ...metadata, generation: metadata.generation + 1 };
  // A smaller plan takes nothing away of a root: what is written there stays.
  const rootBytes = Math.max(spec.rootBytes, size.rootBytes);
  unit.update(machineKind, machine, { ...machine.object, metadata: resized, spec: { ...spec, ...size, rootBytes } });
}

async function promise(
  machine: MachineObject,
  hostId: string,
  size: MachineSize,
  unit: UnitOfWork,
  deps: MachineResizeDeps,
  signal?: AbortSignal,
): Promise<void> {
  const others = () => Iterator.from(deps.machines.values()).map(({ object }) => object);
  const taken = await takeRoom(hostId, (host) => growthRefusal(machine, size, host, others()), deps, signal);
  if (taken.promise === undefined)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `Host ${hostId}, which has the machine, cannot let it grow: ${taken.refused} Ask for less, or have an operator make room there: \`admin hosts get ${hostId}\` tells what is promised to whom.`,
    );
  // Where only what is free counts, nothing is promised, and others need not wait.
  if (isBounded(taken.promise.of.object)) unit.update(hostKind, taken.promise.of, taken.promise.after);
}
