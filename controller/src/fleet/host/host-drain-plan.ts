import type { MachineObject } from "../machine/machine.ts";
import type { MachineOwner } from "../owner/owner-kind.ts";
import type { Owners } from "../owner/owners.ts";
import { type HostDrainStatus, type HostObject, stopsSingleNodes } from "./host.ts";
import type { HostDrainEvent } from "./host-lifecycle.ts";

export interface HostDrainPlan {
  readonly event: HostDrainEvent | undefined;
  readonly change: Pick<HostDrainStatus, "machines" | "remaining" | "waitsFor">;
}

const ownersMax = 100;

/**
 * Computes the progress of a host's drain from its machines. The drain itself stops nothing: owners follow the host's
 * spec, and the warm pool removes machines of cordoned hosts, so a crash leaves nothing half done. `hasOthers`: true if
 * the owner has further machines, so that a machine on another host can replace the one on this host.
 */
export function planHostDrain(
  host: HostObject,
  hostMachines: readonly MachineObject[],
  hasOthers: (owner: MachineOwner) => boolean,
  owners: Pick<Owners, "drain">,
): HostDrainPlan {
  const { drain } = host.status;
  if (host.spec.drain === null) {
    const change = { machines: 0, remaining: 0, waitsFor: [] };
    return { event: drain.state === "none" ? undefined : "cancelled", change };
  }
  const remaining = hostMachines.filter((machine) => !isStopped(machine));
  const mayStop = stopsSingleNodes(host);
  const owned = remaining.flatMap(({ spec: { owner }, status }) =>
    owner === null ? [] : [{ owner, status, result: owners.drain(owner, { hasOthers: hasOthers(owner), mayStop }) }],
  );
  const waitsFor = owned.slice(0, ownersMax).map(({ owner, status, result }) => ({
    ownerKind: owner.kind,
    ownerId: owner.id,
    reason: status.state === "unreachable" ? `The machine is unreachable: ${status.reason}` : result.reason,
  }));
  const isBlocked = owned.some(({ result }) => result.outcome === "blocks");
  const change = { machines: Math.max(drain.machines, hostMachines.length), remaining: remaining.length, waitsFor };
  return { event: eventOf(drain.state, remaining.length === 0, isBlocked), change };
}

/** True if the machine is stopped and its owner does not start it. */
function isStopped({ spec, status }: MachineObject): boolean {
  return spec.owner !== null && spec.power === "off" && status.state === "stopped";
}

function eventOf(state: HostDrainStatus["state"], isEmpty: boolean, isBlocked: boolean): HostDrainEvent | undefined {
  if (state === "none") return "requested";
  if (isEmpty) return state === "drained" ? undefined : "emptied";
  if (state === "drained") return "refilled";
  if (isBlocked) return state === "blocked" ? undefined : "ownerBlocks";
  return state === "blocked" ? "unblocked" : undefined;
}
