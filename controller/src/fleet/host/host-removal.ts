import type { MachineObject } from "../machine/machine.ts";
import type { HostObject } from "./host.ts";

/** Reason why a host cannot be removed; with `field`, the invalid field of the request. */
export interface RemovalRefusal {
  readonly field?: "lost_services";
  readonly detail: string;
}

const namedServicesMax = 20;

/**
 * Pure: the reason with a remedy; undefined if the host can be removed. `here`: machines whose objects are on the host.
 */
export function hostRemovalRefusal(
  { metadata: { id }, spec, status }: HostObject,
  here: readonly MachineObject[],
  destroyed: boolean,
  lostServices: readonly string[],
): RemovalRefusal | undefined {
  if (spec.address === "")
    return { detail: `Host ${id} is the controllers' own: it can be cordoned and drained, not removed.` };
  if (!destroyed) {
    if (lostServices.length > 0)
      return {
        field: "lost_services",
        detail: "is for destroyed hosts only; without `destroyed` the host keeps its data",
      };
    if (here.length === 0) return undefined;
    const services = servicesOf(here);
    const waiting = here.length - here.filter(({ spec: { owner } }) => owner !== null).length;
    const owned = services.length === 0 ? "" : ` Delete the services ${named(services)} first.`;
    const free = waiting === 0 ? "" : ` The ${waiting} of the warm pool are removed when it is cordoned.`;
    return { detail: `${here.length} machines are on host ${id}.${owned}${free}` };
  }
  if (status.state === "ready") return { detail: `Host ${id} answers, so it is not destroyed: drain it instead.` };
  const services = servicesOf(here);
  const missing = services.filter((service) => !lostServices.includes(service));
  if (missing.length > 0)
    return { field: "lost_services", detail: `must name every service whose data is lost, also ${named(missing)}` };
  const others = lostServices.filter((service) => !services.includes(service));
  if (others.length > 0) return { field: "lost_services", detail: `${named(others)} is not on host ${id}` };
  return undefined;
}

function servicesOf(machines: readonly MachineObject[]): string[] {
  return [...new Set(machines.flatMap(({ spec }) => (spec.owner === null ? [] : [spec.owner.id])))].sort();
}

function named(services: readonly string[]): string {
  const more = services.length > namedServicesMax ? ` and ${services.length - namedServicesMax} more` : "";
  return `${services.slice(0, namedServicesMax).join(", ")}${more}`;
}
