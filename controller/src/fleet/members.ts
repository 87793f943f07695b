import { root } from "../store/resource.ts";
import type { Lease, Store } from "../store/store.ts";

const prefix = `${root}/agent-listener/`;

/** Where the controllers listen for agents and for each other; each entry lives as long as its controller's lease. */
export interface Members {
  /** host:port of every controller. */
  readonly addresses: readonly string[];
  addressOf(controllerId: string): string | undefined;
  announce(lease: Lease, address: string): Promise<void>;
  close(): void;
}

/** `onArrival` is called when a controller listens that did not before. */
export function createMembers(store: Store, controllerId: string, onArrival: () => void = () => undefined): Members {
  const addresses = new Map<string, string>();
  let told = new Set<string>();
  const watch = store.watch(prefix, {
    reset: () => addresses.clear(),
    put: ({ key, value }) => void addresses.set(key.slice(prefix.length), JSON.parse(value) as string),
    delete: (key) => void addresses.delete(key.slice(prefix.length)),
    synced() {
      const arrived = [...addresses.values()].some((address) => !told.has(address));
      told = new Set(addresses.values());
      if (arrived) onArrival();
    },
  });
  return {
    get addresses() {
      return [...new Set(addresses.values())];
    },
    addressOf: (id) => addresses.get(id),
    async announce(lease, address) {
      const put = { key: `${prefix}${controllerId}`, value: JSON.stringify(address), lease };
      await store.commit({ conditions: [], puts: [put], deletes: [] });
      addresses.set(controllerId, address);
    },
    close: () => watch.close(),
  };
}
