import { createOrderedIds } from "./ordered-ids.ts";
import { createIndexEntries, type IndexEntries } from "./index-entries.ts";
import type { Kind } from "./kind.ts";
import type { Index } from "./object-index.ts";
import { idOf, keyOf, prefixOf, type Resource, type Stored } from "./resource.ts";
import { createRevisionWaits, type Progress } from "./revision-waits.ts";
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
   * The objects under this key of an index of the kind, in id order; throws for an index that the kind does not have.
   */
  by(index: Index<R>, key: string): Stored<R>[];
  /** The keys of an index of the kind, in no order. */
  keysOf(index: Index<R>): IterableIterator<string>;
  /** Ids of all, in no order. */
  ids(): IterableIterator<string>;
  /**
   * In id order (which is age), from `after` (exclusive) on. It looks at a bounded number of objects, and takes no more
   * than 1 MiB of them where `limit` is finite, so a page may be short or empty: only an undefined `next` ends the
   * list.
   */
  page(
    filter: (object: R) => boolean,
    page: { after: string | undefined; limit: number; organizationId?: string },
    bounds?: { maxScanned: number },
  ): { items: Stored<R>[]; next: string | undefined };
  /** Calls back with the id of each object that came, changed or went, and with the object as it was before. */
  subscribe(onChange: (id: string, before: R | undefined) => void): Watch;
  /** Resolves when the memory has this revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  reached(revision: bigint, timeoutMs: number): Promise<void>;
  /** Its progress, for waits on several collections. */
  readonly progress: Progress;
  /** The revision that the memory has. */
  readonly revision: bigint;
  /** Resolves when the first listing is in. */
  readonly ready: Promise<void>;
  readonly size: number;
  close(): void;
}

/** Of a page for one reader. */
const pageBytesMax = 1024 * 1024;

/** Opens the memory of a kind; it is whole once `ready`. Memories that are waited for together share `waits`. */
export function createCollection<R extends Resource<unknown, unknown>>(
  store: Store,
  kind: Kind<R>,
  waits = createRevisionWaits(),
): Collection<R> {
  let objects = new Map<string, Stored<R>>();
  const order = createOrderedIds();
  /** Bytes of each object as it is stored. */
  const sizes = new WeakMap<Stored<R>, number>();
  /** While a new listing comes in, reads are answered from the old one. */
  let listing: Map<string, Stored<R>> | undefined;
  let revision = 0n;
  const indexes = new Map<Index<R>, IndexEntries<R>>();
  for (const index of kind.indexes) indexes.set(index, createIndexEntries(index));
  const subscribers = new Set<(id: string, before: R | undefined) => void>();
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
    for (const entries of indexes.values()) entries.note(id, before?.object, after?.object);
    for (const tell of subscribers) tell(id, before?.object);
  }

  function takeListing(listed: Map<string, Stored<R>>): void {
    listing = undefined;
    for (const id of objects.keys()) if (!listed.has(id)) change(id, undefined);
    for (const [id, stored] of listed) {
      if (objects.get(id)?.modRevision !== stored.modRevision) change(id, stored);
    }
  }

  function storedOf({ value, modRevision }: StoredValue): Stored<R> {
    const stored = { object: kind.parse(value), modRevision };
    sizes.set(stored, value.length);
    return stored;
  }

  function entriesOf(index: Index<R>): IndexEntries<R> {
    const entries = indexes.get(index);
    if (entries === undefined) throw new Error(`${kind.name} has no index ${index.name}`);
    return entries;
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
      waits.moved();
    },
  });
  const progress: Progress = { revision: () => revision, ask: watch.requestProgress };

  return {
    get: (id) => objects.get(id),
    async fresh(id, signal) {
      const value = await store.get(keyOf(kind, id), signal);
      return value && storedOf(value);
    },
    values: () => objects.values(),
    by: (index, key) =>
      entriesOf(index)
        .under(key)
        .flatMap((id) => objects.get(id) ?? []),
    keysOf: (index) => entriesOf(index).keys(),
    ids: () => objects.keys(),
    page(filter, { after, limit, organizationId }, { maxScanned } = { maxScanned: 1_000 }) {
      const ids = order.of(organizationId);
      const items: Stored<R>[] = [];
      let at = ids.behind(after);
      const end = Math.min(ids.size, at + maxScanned);
      const bytesMax = Number.isFinite(limit) ? pageBytesMax : Number.POSITIVE_INFINITY;
      let bytes = 0;
      for (; at < end && items.length < limit; at += 1) {
        const stored = objects.get(ids.at(at));
        if (stored === undefined || !filter(stored.object)) continue;
        bytes += sizes.get(stored) ?? 0;
        if (bytes > bytesMax && items.length > 0) break;
        items.push(stored);
      }
      return { items, next: at < ids.size ? ids.at(at - 1) : undefined };
    },
    subscribe(onChange) {
      subscribers.add(onChange);
      return { close: () => subscribers.delete(onChange) };
    },
    reached: (wanted, timeoutMs) => waits.reached(progress, wanted, timeoutMs),
    progress,
    get revision() {
      return revision;
    },
    ready,
    get size() {
      return objects.size;
    },
    close: watch.close,
  };
}
