import type { Collection } from "../store/collection.ts";
import { type HostObject, holdsServices } from "./host.ts";

/** Calls back with a host that holds the services on it stopped now, or no longer. */
export function whenHoldsChange(hosts: Collection<HostObject>, onChange: (hostId: string) => void): { close(): void } {
  const holding = new Set<string>();
  const look = (hostId: string) => {
    const host = hosts.get(hostId)?.object;
    const holds = host !== undefined && holdsServices(host);
    if (holds === holding.has(hostId)) return;
    if (holds) holding.add(hostId);
    else holding.delete(hostId);
    onChange(hostId);
  };
  for (const { object } of hosts.values()) look(object.metadata.id);
  return hosts.subscribe(look);
}
