import type { Fleet } from "../fleet.ts";
import { type HostObject, hasReservationLimit } from "../host/host.ts";
import { type HostReservation, reserveCapacity } from "../placement/host-reservations.ts";
import { imageFor, refusalOn } from "../placement/place-machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import { firstReportTimeoutMs } from "../machine/machine-plan.ts";
import { isSameKind } from "./warm-pool-plan.ts";

/** A machine of the warm pool that one caller may claim. */
export interface TakenMachine {
  readonly machine: Stored<MachineObject>;
  /** Reservation on its host, for the transaction of the claim; undefined if the host has no reservation limit. */
  readonly reservation: HostReservation | undefined;
  /** Returns the machine to the pool if it was not claimed. */
  release(): void;
}

/**
 * The warm pool: machines that run before they are requested, so that a new service starts within a second. A machine
 * of the pool is a machine object without an owner. `warm-pool-reconciler.ts` creates and removes these machines by
 * demand (`warm-pool-plan.ts`); a new owner claims a machine in the transaction that creates the owner.
 */
export interface WarmPool {
  /**
   * Takes a machine of the pool that matches the spec, on a host with capacity for its new size, preferably not on a
   * host of the same owner. Undefined without one. No other caller of this controller gets the machine until it is
   * released. It gets its owner by the transaction that writes `claimedMachine` and the reservation over the taken
   * revisions: of two controllers that claim one machine, or a host's last capacity, one gets a Conflict.
   */
  take(request: MachineSpecObject, signal?: AbortSignal): Promise<TakenMachine | undefined>;
}

export interface WarmPoolDeps {
  readonly machines: Pick<Collection<MachineObject>, "values" | "untilRevision">;
  readonly hosts: Pick<Collection<HostObject>, "get" | "getCurrent">;
  readonly fleet: Pick<Fleet, "session" | "observation">;
  /**
   * True while automation is paused, such as after a restore: machines that are free in the store may have an owner.
   */
  readonly isPaused: () => boolean;
  readonly now: () => number;
}

/**
 * True if the machine certainly has no data. A restored store may show a machine in the pool that was claimed since, so
 * its object is not enough: the machine's agent must be connected and report no instance.
 */
export function isFree(
  { metadata, spec, status }: MachineObject,
  fleet: Pick<Fleet, "session" | "observation">,
  now: number,
): boolean {
  if (spec.owner !== null || status.state !== "waiting" || metadata.deletionRequestedAt !== undefined) return false;
  const session = fleet.session(metadata.id);
  return (
    session !== undefined &&
    now - session.connectedAt > firstReportTimeoutMs &&
    fleet.observation(metadata.id) === undefined
  );
}

export function createWarmPool({ machines, hosts, fleet, isPaused, now }: WarmPoolDeps): WarmPool {
  // Machines by object identity: a machine whose object changed may be taken again.
  const taken = new WeakSet<MachineObject>();
  const objects = () => Iterator.from(machines.values()).map(({ object }) => object);

  function matches({ metadata, spec }: MachineObject, request: MachineSpecObject, host: HostObject): boolean {
    // The pool has no virtual machines.
    if (request.kind === "virtual_machine") return false;
    if (!isSameKind(spec, request) || spec.diskBytes > request.diskBytes) return false;
    if (request.image !== "" && spec.image !== request.image) return false;
    // The machine has its image and its addresses already, so the host need not have free ones.
    return refusalOn({ ...request, image: "", id: metadata.id, isCreated: true }, host, objects()) === undefined;
  }

  return {
    async take(desired, signal) {
      if (isPaused()) return undefined;
      const request = { ...desired, image: imageFor({ ...desired, id: "" }, objects()) };
      const ownersHosts = hostsOf(request.owner, objects());
      const isOnOwnersHost = ({ object }: Stored<MachineObject>) => ownersHosts.has(object.spec.hostId);
      const free = Iterator.from(machines.values())
        .filter(({ object }) => isFree(object, fleet, now()) && !taken.has(object))
        .toArray();
      const byPreference =
        ownersHosts.size === 0 ? free : free.sort((a, b) => Number(isOnOwnersHost(a)) - Number(isOnOwnersHost(b)));
      for (const machine of byPreference) {
        const { object } = machine;
        const host = hosts.get(object.spec.hostId ?? "")?.object;
        if (host === undefined || taken.has(object) || !matches(object, request, host)) continue;
        taken.add(object);
        const release = () => {
          taken.delete(object);
        };
        if (!hasReservationLimit(host)) return { machine, reservation: undefined, release };
        try {
          const refusal = (current: HostObject) =>
            matches(object, request, current) ? undefined : "the machine no longer matches";
          const { reservation } = await reserveCapacity(host.metadata.id, refusal, { machines, hosts }, signal);
          if (reservation !== undefined) return { machine, reservation, release };
        } catch (error) {
          release();
          throw error;
        }
        release();
      }
      return undefined;
    },
  };
}

/** Ids of the hosts of an owner's machines. */
function hostsOf(owner: MachineSpecObject["owner"], machines: Iterable<MachineObject>): ReadonlySet<string | null> {
  const found = new Set<string | null>();
  if (owner === null) return found;
  for (const { spec } of machines)
    if (spec.owner?.id === owner.id && spec.owner.kind === owner.kind) found.add(spec.hostId);
  return found;
}

/**
 * The machine after its claim. Its id, host, addresses, certificate and image remain; everything else is from the
 * owner's spec.
 */
export function claimedMachine(
  machine: MachineObject,
  owner: { readonly organizationId: string; readonly name: string; readonly spec: MachineSpecObject },
  now: number,
): MachineObject {
  const { organizationId, name, spec } = owner;
  return {
    metadata: { ...nextMetadata(machine.metadata, now), organizationId, name },
    spec: { ...spec, image: machine.spec.image, hostId: machine.spec.hostId },
    status: { ...machine.status, state: "claimed", reason: "" },
  };
}
