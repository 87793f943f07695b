import type { MachineObject } from "../machine/machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { Conflict } from "#kernel/store/unit-of-work.ts";
import { type HostObject, withPromise } from "../host/host.ts";

/**
 * Room of a host, promised in the transaction that writes `after` over `of`: of two that want the last of it, by whichever
 * controller, one gets a Conflict and counts again.
 */
export interface HostPromise {
  readonly of: Stored<HostObject>;
  readonly after: HostObject;
}

export interface HostRoomDeps {
  readonly machines: Pick<Collection<MachineObject>, "reached">;
  readonly hosts: Pick<Collection<HostObject>, "fresh">;
}

const countedWithinMs = 1_000;

/**
 * The host as it is now, when all that was promised on it until now is in the memory of machines; `refusal` says why it cannot
 * take more, or nothing. Throws Conflict for a host that is gone.
 */
export async function takeRoom(
  hostId: string,
  refusal: (host: HostObject) => string | undefined,
  { machines, hosts }: HostRoomDeps,
  signal?: AbortSignal,
): Promise<{ readonly promise: HostPromise } | { readonly promise?: never; readonly refused: string }> {
  const host = await hosts.fresh(hostId, signal);
  if (host === undefined) throw new Conflict();
  await machines.reached(host.modRevision, countedWithinMs);
  const refused = refusal(host.object);
  return refused === undefined ? { promise: { of: host, after: withPromise(host.object) } } : { refused };
}
