import { idOf, prefixOf } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { dnsRecordKind, type DnsRecordObject } from "./dns-record.ts";

/** A name for DNS servers, with its addresses. Without addresses the name is deleted. */
export interface ZoneEntry {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly ttlS: number;
}

/** The zone in memory at a revision of the store, and its changes. */
export interface ZoneFeed {
  readonly revision: bigint;
  readonly ready: Promise<void>;
  entries(): ZoneEntry[];
  /** The entry of a name; without addresses if the name does not exist. */
  entry(name: string): ZoneEntry;
  /** Calls back with the names that changed up to a new revision. */
  subscribe(onChange: (names: readonly string[]) => void): { close(): void };
  close(): void;
}

export function createZoneFeed(store: Store): ZoneFeed {
  const zone = new Map<string, ZoneEntry>();
  const subscribers = new Set<(names: readonly string[]) => void>();
  const { promise: ready, resolve: markReady } = Promise.withResolvers<void>();
  let changed = new Set<string>();
  let revision = 0n;
  // After a watch reset the store lists all keys; keys missing from the list were deleted. Followers get the
  // difference.
  let unseen: Set<string> | undefined;

  const watch = store.watch(prefixOf(dnsRecordKind), {
    reset() {
      unseen = new Set(zone.keys());
    },
    put({ key, value }) {
      const name = idOf(key);
      unseen?.delete(name);
      const { spec } = JSON.parse(value) as DnsRecordObject;
      const entry = { name, addresses: spec.addresses, ttlS: spec.ttlS };
      if (isSame(zone.get(name), entry)) return;
      zone.set(name, entry);
      changed.add(name);
    },
    delete(key) {
      const name = idOf(key);
      if (zone.delete(name)) changed.add(name);
    },
    synced(reached) {
      for (const name of unseen ?? []) if (zone.delete(name)) changed.add(name);
      unseen = undefined;
      revision = reached;
      const names = [...changed];
      changed = new Set();
      markReady();
      for (const subscriber of subscribers) subscriber(names);
    },
  });

  return {
    get revision() {
      return revision;
    },
    ready,
    entries: () => [...zone.values()],
    entry: (name) => zone.get(name) ?? { name, addresses: [], ttlS: 0 },
    subscribe(onChange) {
      subscribers.add(onChange);
      return {
        close: () => {
          subscribers.delete(onChange);
        },
      };
    },
    close: () => watch.close(),
  };
}

function isSame(a: ZoneEntry | undefined, b: ZoneEntry): boolean {
  return a !== undefined && a.ttlS === b.ttlS && a.addresses.join() === b.addresses.join();
}
