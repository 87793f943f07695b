import type { Fleet } from "../fleet/fleet.ts";
import type { Collection } from "../store/collection.ts";
import type { Stored } from "../store/resource.ts";
import type { MachineObject, MachineSpecObject } from "./machine.ts";
import { toldWithinMs } from "./machine-plan.ts";
import { isSameKind, type MachineKind } from "./waiting-plan.ts";

/** A waiting machine that one caller may claim. */
export interface TakenMachine {
  readonly machine: Stored<MachineObject>;
  /** It was not claimed: another caller may have it. */
  giveBack(): void;
}

/** Which machine a new owner gets of those that run already and are nobody's. */
export interface WaitingMachines {
  /**
   * One that fits, given to no other caller here; undefined when there is none. A caller that has chosen no image takes any. It is the owner's only by the transaction
   * that writes `claimedMachine` over the revision taken: of two controllers, one gets a Conflict.
   */
  take(wanted: MachineKind & Pick<MachineSpecObject, "diskBytes" | "image">): TakenMachine | undefined;
}

export interface WaitingMachinesDeps {
  readonly machines: Pick<Collection<MachineObject>, "values">;
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

export function createWaitingMachines({ machines, fleet, held, now }: WaitingMachinesDeps): WaitingMachines {
  // By object: what is read anew, because it changed, may be taken anew.
  const taken = new WeakSet<MachineObject>();

  return {
    take(wanted) {
      if (held()) return undefined;
      for (const machine of machines.values()) {
        const { object } = machine;
        if (!isFree(object, fleet, now()) || taken.has(object)) continue;
        if (!isSameKind(object.spec, wanted) || object.spec.diskBytes > wanted.diskBytes) continue;
        if (wanted.image !== "" && object.spec.image !== wanted.image) continue;
        taken.add(object);
        return { machine, giveBack: () => void taken.delete(object) };
      }
      return undefined;
    },
  };
}

/**
 * Pure: the machine as its first owner's. It keeps its id, address and agent, and the image that it runs from; all else is as
 * the owner wants it.
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
    spec: { ...spec, image: machine.spec.image },
    status: { ...machine.status, state: "claimed", reason: "" },
  };
}
