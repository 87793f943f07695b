import type { Collection } from "../store/collection.ts";
import type { HostObject } from "./host.ts";

/** Calls back with a host whenever what is read of it is another text than before; of the figures that it tells most matter to nobody. */
export function whenHostsChange(
  hosts: Collection<HostObject>,
  read: (host: HostObject) => string,
  onChange: (hostId: string) => void,
): { close(): void } {
  const known = new Map<string, string>();
  const look = (hostId: string) => {
    const host = hosts.get(hostId)?.object;
    const now = host && read(host);
    if (now === known.get(hostId)) return;
    if (now === undefined) known.delete(hostId);
    else known.set(hostId, now);
    onChange(hostId);
  };
  for (const { object } of hosts.values()) look(object.metadata.id);
  return hosts.subscribe(look);
}
