import { HoldfastError } from "@holdfast/common/errors.ts";
import { createOrderedIds } from "./ordered-ids.ts";
import { idOf, keyOf, prefixOf, type Kind, type Resource, type Stored } from "./resource.ts";
import type { Store, StoredValue, Watch } from "./store.ts";

/**
 * The objects of one kind, kept current in memory by a watch. Reads are free and may be a moment old;
 * `fresh` asks the store. Changes go through a unit of work (unit-of-work.ts).
 */
export interface Collection<R> {
  get(id: string): Stored<R> | undefined;
  fresh(id: string, signal?: AbortSignal): Promise<Stored<R> | undefined>;
  /** Every object, in no order; for resync and indexes, never for an answer to a user. */
  values(): IterableIterator<Stored<R>>;
  /**
   * In id order (which is age), from `after` (exclusive) on. It looks at a bounded number of objects, so a page may be
   * short or empty: only an undefined `next` ends the list.
   */
  page(
    filter: (object: R) => boolean,
    page: { after: string | undefined; limit: number; organizationId?: string },
    bounds?: { maxScanned: number },
  ): { items: Stored<R>[]; next: string | undefined };
  /** Calls back with the id of each object that came, changed or went. */
  subscribe(onChange: (id: string) => void): Watch;
  /** Resolves when the memory has this revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  reached(revision: bigint, timeoutMs: number): Promise<void>;
  /** Resolves when the first listing is in. */
  readonly ready: Promise<void>;
  readonly size: number;
  close(): void;
}

/** `parse` may upgrade what an older version wrote; it keeps the fields that it does not know. */
export function createCollection<R extends Resource<unknown, unknown>>(
  store: Store,
  kind: Kind,
  parse: (value: string) => R = JSON.parse,
): Collection<R> {
  let objects = new Map<string, Stored<R>>();
  const order = createOrderedIds();
  /** While a new listing comes in, reads are answered from the old one. */
  let listing: Map<string, Stored<R>> | undefined;
  let revision = 0n;
  const subscribers = new Set<(id: string) => void>();
  const waiting = new Set<() => void>();
  const { promise: ready, resolve: nowReady } = Promise.withResolvers<void>();

  function change(id: string, after: Stored<R> | undefined): void {
    const before = objects.get(id);
    const home = before?.object.metadata.organizationId;
    // Most changes leave it where it is, and there may be very many.
    const moves = home === undefined || after?.object.metadata.organizationId !== home;
    if (moves && home !== undefined) order.remove(home, id);
    if (after === undefined) objects.delete(id);
    else {
      objects.set(id, after);
      if (moves) order.add(after.object.metadata.organizationId, id);
    }
    for (const tell of subscribers) tell(id);
  }

  function takeListing(listed: Map<string, Stored<R>>): void {
    listing = undefined;
    for (const id of objects.keys()) if (!listed.has(id)) change(id, undefined);
    for (const [id, stored] of listed) {
      if (objects.get(id)?.modRevision !== stored.modRevision) change(id, stored);
    }
  }

  function storedOf({ value, modRevision }: StoredValue): Stored<R> {
    return { object: parse(value), modRevision };
  }

  const watch = store.watch(prefixOf(kind), {
    reset() {
      listing = new Map();
    },
    put(value) {
      const id = idOf(value.key);
      if (listing === undefined) change(id, storedOf(value));
      else listing.set(id, storedOf(value));
    },
    delete(key) {
      change(idOf(key), undefined);
    },
    synced(to) {
      if (listing !== undefined) takeListing(listing);
      revision = to;
      nowReady();
      for (const check of waiting) check();
    },
  });

  return {
    get: (id) => objects.get(id),
    async fresh(id, signal) {
      const value = await store.get(keyOf(kind, id), signal);
      return value && storedOf(value);
    },
    values: () => objects.values(),
    page(filter, { after, limit, organizationId }, { maxScanned } = { maxScanned: 1_000 }) {
      const ids = order.of(organizationId);
      const items: Stored<R>[] = [];
      let at = ids.behind(after);
      const end = Math.min(ids.size, at + maxScanned);
      for (; at < end && items.length < limit; at += 1) {
        const stored = objects.get(ids.at(at));
        if (stored !== undefined && filter(stored.object)) items.push(stored);
      }
      return { items, next: at < ids.size ? ids.at(at - 1) : undefined };
    },
    subscribe(onChange) {
      subscribers.add(onChange);
      return { close: () => subscribers.delete(onChange) };
    },
    async reached(wanted, timeoutMs) {
      if (revision >= wanted) return;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const check = () => revision >= wanted && resolve();
      waiting.add(check);
      watch.requestProgress();
      const asking = setInterval(watch.requestProgress, 100);
      const timer = setTimeout(
        () => reject(new HoldfastError("STORE_UNAVAILABLE", "This replica has not seen the change yet.")),
        timeoutMs,
      );
      try {
        await promise;
      } finally {
        waiting.delete(check);
        clearInterval(asking);
        clearTimeout(timer);
      }
    },
    ready,
    get size() {
      return objects.size;
    },
    close: watch.close,
  };
}
