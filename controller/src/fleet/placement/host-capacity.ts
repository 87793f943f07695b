import type { MachineObject } from "../machine/machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { Conflict } from "#kernel/store/unit-of-work.ts";
import { type HostObject, withReservation } from "../host/host.ts";

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
