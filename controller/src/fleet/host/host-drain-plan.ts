import type { MachineObject } from "../machine/machine.ts";
import { type HostDrainStatus, type HostObject, holdsServices } from "./host.ts";
import type { HostDrainEvent } from "./host-lifecycle.ts";

export interface HostDrainPlanned {
  readonly event: HostDrainEvent | undefined;
  readonly change: Pick<HostDrainStatus, "machines" | "left" | "waitsFor">;
}

const mostNamed = 100;

/**
 * Pure: how far the drain of a host is, by its machines. It stops nothing itself: services follow the host's spec, machines that
 * wait for an owner go because their host is cordoned. So there is nothing that a crash could leave half done. `hasOthers`: has
 * the service other nodes, so that one elsewhere takes the place of the one here?
 */
export function planHostDrain(
  host: HostObject,
  here: readonly MachineObject[],
  hasOthers: (serviceId: string) => boolean,
): HostDrainPlanned {
  const { drain } = host.status;
  if (host.spec.drain === null) {
    const change = { machines: 0, left: 0, waitsFor: [] };
    return { event: drain.state === "none" ? undefined : "cancelled", change };
  }
  const left = here.filter((machine) => !isAtRest(machine));
  const owned = left.flatMap(({ spec, status }) => (spec.owner === null ? [] : [{ owner: spec.owner, status }]));
  const consented = holdsServices(host);
  const waitsFor = owned.slice(0, mostNamed).map(({ owner, status }) => ({
    serviceId: owner.id,
    reason:
      status.state === "unreachable"
        ? `It cannot be reached: ${status.reason}`
        : hasOthers(owner.id)
          ? "Another node takes its place, once a host of its zone has room."
          : consented
            ? "It is being stopped."
            : "It has its only node here. Drain with stop_single_nodes, or delete it.",
  }));
  const isHindered = !consented && owned.some(({ owner }) => !hasOthers(owner.id));
  const change = { machines: Math.max(drain.machines, here.length), left: left.length, waitsFor };
  return { event: eventOf(drain.state, left.length === 0, isHindered), change };
}

/** It is turned off and stays so. */
function isAtRest({ spec, status }: MachineObject): boolean {
  return spec.owner !== null && spec.power === "off" && status.state === "stopped";
}

function eventOf(state: HostDrainStatus["state"], isEmpty: boolean, isHindered: boolean): HostDrainEvent | undefined {
  if (state === "none") return "asked";
  if (isEmpty) return state === "drained" ? undefined : "emptied";
  if (state === "drained") return "refilled";
  if (isHindered) return state === "blocked" ? undefined : "hindered";
  return state === "blocked" ? "freed" : undefined;
}
