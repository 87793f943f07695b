import { HoldfastError } from "@holdfast/common/errors.ts";
import { hasReservationLimit, hostKind, type HostObject } from "../host/host.ts";
import { type HostCapacityDeps, memoryRefusal, reservationsOn, reserveCapacity } from "./host-reservations.ts";
import { firstRefusal, freeSpaceRefusal, reservationRefusal, rootProblem } from "./storage-shares.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { machineKind, type MachineObject, type MachineSize, type MachineSpecObject } from "../machine/machine.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";

export interface MachineResizeDeps extends HostCapacityDeps {
  readonly machines: Pick<Collection<MachineObject>, "getCurrent" | "untilRevision" | "values">;
}

/**
 * Adds a machine's new size, and the reservation on its host, to the caller's transaction. Of two concurrent requests
 * for a host's last capacity one gets a Conflict, and is refused when it retries. The machine reconciler applies the
 * size. Throws NOT_POSSIBLE with the missing capacity and a remedy, OBJECT_NOT_FOUND, and WRONG_STATE for a machine
 * that is being deleted.
 */
export async function resizeMachine(
  machineId: string,
  size: MachineSize & Pick<MachineSpecObject, "ownMemoryBytes">,
  unit: Changes,
  deps: MachineResizeDeps,
  signal?: AbortSignal,
): Promise<void> {
  const machine = await deps.machines.getCurrent(machineId, signal);
  if (machine === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `There is no machine ${machineId}.`);
  const { metadata, spec } = machine.object;
  if (metadata.deletionRequestedAt !== undefined)
    throw new HoldfastError("WRONG_STATE", `Machine ${machineId} is being deleted.`);
  if (size.diskBytes < spec.diskBytes)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      "A data disk can only grow. For a smaller one, move the data to a new service.",
    );
  // A machine without a host is placed with its new size later.
  if (spec.hostId !== null) await reserveGrowth(machine.object, spec.hostId, size, unit, deps, signal);
  const resized = { ...metadata, generation: metadata.generation + 1 };
  // A root never shrinks, not even for a smaller plan.
  const rootBytes = Math.max(spec.rootBytes, size.rootBytes);
  const { ownMemoryBytes } = size;
  const after = { ...spec, ...size, rootBytes, ownMemoryBytes };
  unit.update(machineKind, machine, { ...machine.object, metadata: resized, spec: after });
}

async function reserveGrowth(
  machine: MachineObject,
  hostId: string,
  size: MachineSize,
  unit: Changes,
  deps: MachineResizeDeps,
  signal?: AbortSignal,
): Promise<void> {
  const others = () => Iterator.from(deps.machines.values()).map(({ object }) => object);
  const taken = await reserveCapacity(hostId, (host) => growthRefusal(machine, size, host, others()), deps, signal);
  if (taken.reservation === undefined)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `Host ${hostId} has no capacity for the larger machine: ${taken.refused} Choose a smaller size, or have an operator free capacity; \`admin hosts get ${hostId}\` lists the reservations.`,
    );
  // Without a reservation limit the host's object need not change, and concurrent requests do not conflict.
  if (hasReservationLimit(taken.reservation.of.object))
    unit.update(hostKind, taken.reservation.of, taken.reservation.after);
}

/**
 * The reason, with figures, why a machine's host has no capacity for this size; undefined if it has. Only
 * resources that grow are checked, so that a machine on an overcommitted host can shrink. A cordon does not prevent
 * growth.
 */
export function growthRefusal(
  { metadata, spec }: MachineObject,
  size: MachineSize,
  host: HostObject,
  machines: Iterable<MachineObject>,
): string | undefined {
  const needsMemory = size.memoryBytes > spec.memoryBytes;
  const needsDisk = size.diskBytes > spec.diskBytes;
  const needsRoot = size.rootBytes > spec.rootBytes;
  if (!needsMemory && !needsDisk && !needsRoot) return undefined;
  if (host.spec.destroyedAt !== null) return "it was destroyed.";
  const { state, reason } = host.status;
  if (state !== "ready") return `it is ${state}: ${reason}`;
  // A root never shrinks.
  const request = { ...spec, ...size, rootBytes: Math.max(spec.rootBytes, size.rootBytes), id: metadata.id };
  const reservations = reservationsOn(host, request, machines);
  const grown = reservations.storages.filter(({ data, root }) => (data && needsDisk) || (root && needsRoot));
  return (
    (needsMemory ? memoryRefusal(request, host, reservations) : undefined) ??
    (needsRoot ? rootProblem(request, host) : undefined) ??
    firstRefusal(grown, (share) => reservationRefusal(share, host)) ??
    firstRefusal(grown, (share) => freeSpaceRefusal(share, reservations.uncreated))
  );
}
