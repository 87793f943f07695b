import type { Collection } from "#kernel/store/collection.ts";
import type { HostObject } from "./host.ts";

/** Calls back with a host whenever its rendered text changes: most changes of its figures affect no reader. */
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
