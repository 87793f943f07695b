import type { Fleet } from "../fleet.ts";
import { type HostObject, isBounded } from "../host/host.ts";
import { type HostPromise, takeRoom } from "../placement/host-room.ts";
import { imageFor, refusalOn } from "../placement/place-machine.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import { toldWithinMs } from "../machine/machine-plan.ts";
import { isSameKind } from "./waiting-plan.ts";

/** A waiting machine that one caller may claim. */
export interface TakenMachine {
  readonly machine: Stored<MachineObject>;
  /** Its host with this machine promised, for the transaction that claims it; undefined where nothing but what is free counts. */
  readonly promise: HostPromise | undefined;
  /** It was not claimed: another caller may have it. */
  giveBack(): void;
}

/** Which machine a new owner gets of those that run already and are nobody's. */
export interface WaitingMachines {
  /**
   * One that fits, on a host that takes machines and has room for its new size, given to no other caller here; undefined when
   * there is none. Away from members of the same service where that can be. A caller that has chosen no image takes any. It is
   * the owner's only by the transaction that writes `claimedMachine` over the revision taken, and the host's promise with it: of
   * two controllers that want the same machine, or the last room of a host, one gets a Conflict.
   */
  take(wanted: MachineSpecObject, signal?: AbortSignal): Promise<TakenMachine | undefined>;
}

export interface WaitingMachinesDeps {
  readonly machines: Pick<Collection<MachineObject>, "values" | "reached">;
  readonly hosts: Pick<Collection<HostObject>, "get" | "fresh">;
  readonly fleet: Pick<Fleet, "session" | "observation">;
  /** Does anything stand against taking the store's word for what a machine is? */
  readonly held: () => boolean;
  readonly now: () => number;
}

/**
 * True when the machine certainly holds no data. A restored store may take a machine for waiting that was claimed
 * since, so its record is not enough: the machine's own agent must be connected and report no instance.
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

  function fits({ metadata, spec }: MachineObject, wanted: MachineSpecObject, host: HostObject): boolean {
    // None is made ahead as a virtual machine.
    if (wanted.kind === "virtual_machine") return false;
    if (!isSameKind(spec, wanted) || spec.diskBytes > wanted.diskBytes) return false;
    if (wanted.image !== "" && spec.image !== wanted.image) return false;
    // Its image and its addresses are there already, so they are not asked of the host again.
    return refusalOn({ ...wanted, image: "", id: metadata.id, isMade: true }, host, objects()) === undefined;
  }

  return {
    async take(asked, signal) {
      if (held()) return undefined;
      const wanted = { ...asked, image: imageFor({ ...asked, id: "" }, objects()) };
      const peers = hostsOf(wanted.owner, objects());
      const isNear = ({ object }: Stored<MachineObject>) => peers.has(object.spec.hostId);
      const free = Iterator.from(machines.values())
        .filter(({ object }) => isFree(object, fleet, now()) && !taken.has(object))
        .toArray();
      const inOrder = peers.size === 0 ? free : free.sort((a, b) => Number(isNear(a)) - Number(isNear(b)));
      for (const machine of inOrder) {
        const { object } = machine;
        const host = hosts.get(object.spec.hostId ?? "")?.object;
        if (host === undefined || taken.has(object) || !fits(object, wanted, host)) continue;
        taken.add(object);
        const giveBack = () => {
          taken.delete(object);
        };
        if (!isBounded(host)) return { machine, promise: undefined, giveBack };
        try {
          const refusal = (fresh: HostObject) => (fits(object, wanted, fresh) ? undefined : "it does not fit any more");
          const { promise } = await takeRoom(host.metadata.id, refusal, { machines, hosts }, signal);
          if (promise !== undefined) return { machine, promise, giveBack };
        } catch (error) {
          giveBack();
          throw error;
        }
        giveBack();
      }
      return undefined;
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
  return {
    metadata: { ...nextMetadata(machine.metadata, now), organizationId, name },
    spec: { ...spec, image: machine.spec.image, hostId: machine.spec.hostId },
    status: { ...machine.status, state: "claimed", reason: "" },
  };
}
