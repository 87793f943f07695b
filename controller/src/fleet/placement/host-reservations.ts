import { inGib } from "@holdfast/compute/local/free-space.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { Conflict } from "#kernel/store/unit-of-work.ts";
import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import { type HostObject, withReservation } from "../host/host.ts";
import { type StorageShare, storageShares, type StorageRequest } from "./storage-shares.ts";

/** Capacity that a machine needs on its host, and the machine's owner. */
export interface CapacityRequest extends StorageRequest, Pick<MachineSpecObject, "owner" | "memoryBytes"> {
  /** Id of the machine, whose existing reservation is not counted. */
  readonly id: string;
}

/** Capacity of a host that is reserved for other machines. */
export interface Reservations {
  readonly memoryBytes: number;
  /** The storages that the machine would use. */
  readonly storages: readonly StorageShare[];
  /** Number of machines that are placed and not created yet: the free space still includes the space that they need. */
  readonly uncreated: number;
  /** Number of the host's machines with the same owner. */
  readonly sameOwnerCount: number;
}

/** Capacity reserved for the host's other machines. For a machine with an owner, the warm pool does not count. */
export function reservationsOn(
  host: HostObject,
  request: CapacityRequest,
  machines: Iterable<MachineObject>,
): Reservations {
  const counts = ({ metadata, spec }: MachineObject) =>
    spec.hostId === host.metadata.id && metadata.id !== request.id && (spec.owner !== null || request.owner === null);
  const others = Iterator.from(machines).filter(counts).toArray();
  const specs = others.map(({ spec }) => spec);
  return {
    memoryBytes: specs.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0),
    storages: storageShares(host, request, specs),
    uncreated: others.filter(({ status }) => status.address === "").length,
    sameOwnerCount: specs.filter((spec) => hasSameOwner(spec, request)).length,
  };
}

/** The reason, with figures, why the host's memory does not suffice; undefined if it does. */
export function memoryRefusal(
  { memoryBytes }: CapacityRequest,
  { spec, status }: HostObject,
  reservations: Reservations,
): string | undefined {
  const total = status.facts?.memoryTotalBytes ?? 0;
  const factor = spec.memoryOvercommit;
  if (factor === null || reservations.memoryBytes + memoryBytes <= total * factor) return undefined;
  return `${inGib(memoryBytes)} GiB of memory are requested, and ${inGib(reservations.memoryBytes)} GiB of ${inGib(total)} GiB times ${factor} are reserved.`;
}

/** True if both machines have the same owner. */
export function hasSameOwner(
  { owner }: Pick<MachineSpecObject, "owner">,
  request: Pick<CapacityRequest, "owner">,
): boolean {
  return owner !== null && owner.kind === request.owner?.kind && owner.id === request.owner.id;
}

/**
 * A reservation of capacity on a host. It takes effect in the transaction that replaces the host object `of` by
 * `after`: of two concurrent reservations of the last capacity, at any controllers, one gets a Conflict and is computed
 * again.
 */
export interface HostReservation {
  readonly of: Stored<HostObject>;
  readonly after: HostObject;
}

export interface HostCapacityDeps {
  readonly machines: Pick<Collection<MachineObject>, "untilRevision">;
  readonly hosts: Pick<Collection<HostObject>, "getCurrent">;
}

const catchUpTimeoutMs = 1_000;

/**
 * Reads the host, waits until the cache has every machine placed on it so far, and calls `refusal`. Returns the
 * reservation, or the reason against it. Throws Conflict if the host was deleted.
 */
export async function reserveCapacity(
  hostId: string,
  refusal: (host: HostObject) => string | undefined,
  { machines, hosts }: HostCapacityDeps,
  signal?: AbortSignal,
): Promise<{ readonly reservation: HostReservation } | { readonly reservation?: never; readonly refused: string }> {
  const host = await hosts.getCurrent(hostId, signal);
  if (host === undefined) throw new Conflict();
  await machines.untilRevision(host.modRevision, catchUpTimeoutMs);
  const refused = refusal(host.object);
  return refused === undefined ? { reservation: { of: host, after: withReservation(host.object) } } : { refused };
}
