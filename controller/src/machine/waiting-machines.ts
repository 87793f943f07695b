import type { Fleet } from "../fleet/fleet.ts";
import type { HostObject } from "../host/host.ts";
import { refusalOn } from "../host/place-machine.ts";
import type { Collection } from "../store/collection.ts";
import type { Stored } from "../store/resource.ts";
import type { MachineObject, MachineSpecObject } from "./machine.ts";
import { toldWithinMs } from "./machine-plan.ts";
import { isSameKind } from "./waiting-plan.ts";

/** A waiting machine that one caller may claim. */
export interface TakenMachine {
  readonly machine: Stored<MachineObject>;
  /** It was not claimed: another caller may have it. */
  giveBack(): void;
}

/** Which machine a new owner gets of those that run already and are nobody's. */
export interface WaitingMachines {
  /**
   * One that fits, on a host that takes machines and has room for its new size, given to no other caller here; undefined when
   * there is none. Away from members of the same service where that can be. A caller that has chosen no image takes any. It is
   * the owner's only by the transaction that writes `claimedMachine` over the revision taken: of two controllers, one gets a
   * Conflict.
   */
  take(wanted: MachineSpecObject): TakenMachine | undefined;
}

export interface WaitingMachinesDeps {
  readonly machines: Pick<Collection<MachineObject>, "values">;
  readonly hosts: Pick<Collection<HostObject>, "get">;
  readonly fleet: Pick<Fleet, "session" | "observation">;
  /** Does anything stand against taking the store's word for what a machine is? */
  readonly held: () => boolean;
  readonly now: () => number;
}

/**
 * Is it certain that nobody's data is on it? A store that was restored may take for waiting what was claimed since, so its
 * word is not enough: the machine's own agent must be there and report no instance.
 */
export function isFree(
  { metadata, spec, status }: MachineObject,
  fleet: Pick<Fleet, "session" | "observation">,
  now: number,
): boolean {
  if (spec.owner !== null || status.state !== "waiting" || metadata.deletionRequestedAt !== undefined) return false;
  const session = fleet.session(metadata.id);
  return (
    session !== undefined && now - session.connectedAt > toldWithinMs && fleet.observation(metadata.id) === undefined
  );
}

export function createWaitingMachines({ machines, hosts, fleet, held, now }: WaitingMachinesDeps): WaitingMachines {
  // By object: what is read anew, because it changed, may be taken anew.
  const taken = new WeakSet<MachineObject>();
  const objects = () => Iterator.from(machines.values()).map(({ object }) => object);

  function fits({ metadata, spec }: MachineObject, wanted: MachineSpecObject): boolean {
    if (!isSameKind(spec, wanted) || spec.diskBytes > wanted.diskBytes) return false;
    if (wanted.image !== "" && spec.image !== wanted.image) return false;
    const host = hosts.get(spec.hostId ?? "")?.object;
    if (host === undefined) return false;
    return refusalOn({ ...wanted, id: metadata.id }, host, objects()) === undefined;
  }

  return {
    take(wanted) {
      if (held()) return undefined;
      const peers = hostsOf(wanted.owner, objects());
      const isNear = ({ object }: Stored<MachineObject>) => peers.has(object.spec.hostId);
      const free = Iterator.from(machines.values())
        .filter(({ object }) => isFree(object, fleet, now()) && !taken.has(object))
        .toArray();
      const inOrder = peers.size === 0 ? free : free.sort((a, b) => Number(isNear(a)) - Number(isNear(b)));
      const machine = inOrder.find(({ object }) => fits(object, wanted));
      if (machine === undefined) return undefined;
      taken.add(machine.object);
      return { machine, giveBack: () => void taken.delete(machine.object) };
    },
  };
}

/** The hosts that an owner's machines are on. */
function hostsOf(owner: MachineSpecObject["owner"], machines: Iterable<MachineObject>): ReadonlySet<string | null> {
  const found = new Set<string | null>();
  if (owner === null) return found;
  for (const { spec } of machines)
    if (spec.owner?.id === owner.id && spec.owner.kind === owner.kind) found.add(spec.hostId);
  return found;
}

/**
 * Pure: the machine as its first owner's. It keeps its id, host, address and agent, and the image that it runs from; all else
 * is as the owner wants it.
 */
export function claimedMachine(
  machine: MachineObject,
  owner: { readonly organizationId: string; readonly name: string; readonly spec: MachineSpecObject },
  now: number,
): MachineObject {
  const { organizationId, name, spec } = owner;
  const generation = machine.metadata.generation + 1;
  return {
    metadata: { ...machine.metadata, organizationId, name, generation, updatedAt: now },
    spec: { ...spec, image: machine.spec.image, hostId: machine.spec.hostId },
    status: { ...machine.status, state: "claimed", reason: "" },
  };
}
