import type { Collection } from "#kernel/store/collection.ts";
import type { HostObject } from "./host.ts";

/**
 * Calls back with a host's id when the text that `read` returns for it changes; other changes of its status are
 * ignored.
 */
export function watchHosts(
  hosts: Collection<HostObject>,
  read: (host: HostObject) => string,
  onChange: (hostId: string) => void,
): { close(): void } {
  const previous = new Map<string, string>();
  const check = (hostId: string) => {
    const host = hosts.get(hostId)?.object;
    const now = host && read(host);
    if (now === previous.get(hostId)) return;
    if (now === undefined) previous.delete(hostId);
    else previous.set(hostId, now);
    onChange(hostId);
  };
  for (const { object } of hosts.values()) check(object.metadata.id);
  return hosts.subscribe(check);
}
