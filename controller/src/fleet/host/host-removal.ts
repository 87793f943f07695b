import type { MachineObject } from "../machine/machine.ts";
import type { MachineOwner } from "../owner/owner-kind.ts";
import { nameList, type Owners } from "../owner/owners.ts";
import type { HostObject } from "./host.ts";

/** Reason why a host cannot be removed; with `field`, the invalid field of the request. */
export interface RemovalRefusal {
  readonly field?: "lost_services" | "lost_owners";
  readonly detail: string;
}

/** The request to remove a host. */
export interface HostRemoval {
  /** True if the host is destroyed with its data. */
  readonly destroyed: boolean;
  /** Owners whose data may be lost, with the operator's consent. */
  readonly lostOwners: readonly MachineOwner[];
  /** Ids of such owners, from clients that do not send kinds. */
  readonly lostIds: readonly string[];
}

/**
 * The reason why the host cannot be removed, with a remedy; undefined if it can. `hostMachines`: machines whose objects
 * name the host.
 */
export function hostRemovalRefusal(
  { metadata: { id }, spec, status }: HostObject,
  hostMachines: readonly MachineObject[],
  { destroyed, lostOwners, lostIds }: HostRemoval,
  owners: Pick<Owners, "textOf" | "remediesOf" | "isReplaceable">,
): RemovalRefusal | undefined {
  if (spec.address === "")
    return { detail: `Host ${id} is the controllers' own: it can be cordoned and drained, not removed.` };
  if (!destroyed) {
    if (lostIds.length > 0 || lostOwners.length > 0)
      return {
        field: lostIds.length > 0 ? "lost_services" : "lost_owners",
        detail: "is for destroyed hosts only; without `destroyed` the host keeps its data",
      };
    if (hostMachines.length === 0) return undefined;
    const waiting = hostMachines.length - hostMachines.filter(({ spec: { owner } }) => owner !== null).length;
    const remedies = owners.remediesOf(ownersOf(hostMachines));
    const owned = remedies === "" ? "" : ` ${remedies}`;
    const free = waiting === 0 ? "" : ` Machines of the warm pool (${waiting}) are removed when the host is cordoned.`;
    return { detail: `${hostMachines.length} machines are on host ${id}.${owned}${free}` };
  }
  if (status.state === "ready") return { detail: `Host ${id} responds, so it is not destroyed: drain it instead.` };
  const present = ownersOf(hostMachines);
  const isConsented = (owner: MachineOwner) =>
    lostIds.includes(owner.id) || lostOwners.some((lost) => isSameOwner(lost, owner));
  const missing = present.filter((owner) => !owners.isReplaceable(owner) && !isConsented(owner));
  if (missing.length > 0) {
    const detail = `must name every owner whose data is lost, also ${nameList(missing.map(owners.textOf))}`;
    return { field: "lost_owners", detail: `${detail} (${nameList(missing.map(keyOf))})` };
  }
  const foreignIds = lostIds.filter((lost) => !present.some((owner) => owner.id === lost));
  if (foreignIds.length > 0) return { field: "lost_services", detail: `${nameList(foreignIds)} is not on host ${id}` };
  const foreign = lostOwners.filter((lost) => !present.some((owner) => isSameOwner(owner, lost)));
  if (foreign.length > 0)
    return { field: "lost_owners", detail: `${nameList(foreign.map(keyOf))} is not on host ${id}` };
  return undefined;
}

const keyOf = ({ kind, id }: MachineOwner) => `${kind}/${id}`;

function isSameOwner(a: MachineOwner, b: MachineOwner): boolean {
  return a.kind === b.kind && a.id === b.id;
}

/** The owners of these machines, each once, in the order of their ids. */
function ownersOf(machines: readonly MachineObject[]): MachineOwner[] {
  const byKey = new Map(machines.flatMap(({ spec: { owner } }) => (owner === null ? [] : [[keyOf(owner), owner]])));
  return [...byKey.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
