import { createOrderedIds } from "./ordered-ids.ts";
import type { Kind } from "./kind.ts";
import { type Index, idOf, keyOf, prefixOf, type Resource, type Stored } from "./resource.ts";
import { createRevisionWaits, type RevisionProgress } from "./revision-waits.ts";
import type { Store, StoredValue, Watch } from "./store.ts";

/**
 * The objects of one kind, mirrored in memory by a watch, like an informer's cache in Kubernetes. Reads are in memory
 * and may be slightly stale; `getCurrent` reads the store. Changes go through a unit of work (unit-of-work.ts).
 */
export interface Collection<R> {
  get(id: string): Stored<R> | undefined;
  getCurrent(id: string, signal?: AbortSignal): Promise<Stored<R> | undefined>;
  /** Every object, unordered: for resyncs and indexes. A response to a user uses `page`. */
  values(): IterableIterator<Stored<R>>;
  /** The objects under this key of an index, in id order. Throws for an index that the kind does not declare. */
  by(index: Index<R>, key: string): Stored<R>[];
  /** The keys of an index of the kind, unordered. */
  keysOf(index: Index<R>): IterableIterator<string>;
  /** The ids of all objects, unordered. */
  ids(): IterableIterator<string>;
  /**
   * Objects in id order, which is creation order, from `after` (exclusive) on. It scans at most `maxScanned` objects
   * and, where `limit` is finite, returns at most 1 MiB of them, so a page may be short or empty: only an undefined
   * `next` ends the list.
   */
  page(
    filter: (object: R) => boolean,
    page: { after: string | undefined; limit: number; organizationId?: string },
    bounds?: { maxScanned: number },
  ): { items: Stored<R>[]; next: string | undefined };
  /** Calls back with the id of each created, changed or deleted object, and with the object before the change. */
  subscribe(onChange: (id: string, before: R | undefined) => void): Watch;
  /** Resolves when the collection has this revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  untilRevision(revision: bigint, timeoutMs: number): Promise<void>;
  /** RevisionProgress of the collection, for waits on several collections together. */
  readonly progress: RevisionProgress;
  /** The etcd revision that the collection has loaded. */
  readonly revision: bigint;
  /** Resolves when the first listing is loaded. */
  readonly ready: Promise<void>;
  readonly size: number;
  close(): void;
}

/** Limit of the objects in one page, in bytes. */
const pageBytesMax = 1024 * 1024;

/** Opens the collection of a kind; it is complete once `ready`. Collections with the same `waits` share its timer. */
export function createCollection<R extends Resource<unknown, unknown>>(
  store: Store,
  kind: Kind<R>,
  waits = createRevisionWaits(),
): Collection<R> {
  let objects = new Map<string, Stored<R>>();
  const order = createOrderedIds();
  /** Stored size of each object, in bytes. */
  const sizes = new WeakMap<Stored<R>, number>();
  /** The new listing while it loads; reads use the previous objects until it is complete. */
  let listing: Map<string, Stored<R>> | undefined;
  let revision = 0n;
  const indexes = new Map<Index<R>, IndexEntries<R>>();
  for (const index of kind.indexes) indexes.set(index, createIndexEntries(index));
  const subscribers = new Set<(id: string, before: R | undefined) => void>();
  const { promise: ready, resolve: markReady } = Promise.withResolvers<void>();

  function change(id: string, after: Stored<R> | undefined): void {
    const before = objects.get(id);
    const formerOrganizationId = before?.object.metadata.organizationId;
    // Most changes keep the organization, and an update of the order costs time, so skip it.
    const changesOrganization =
      formerOrganizationId === undefined || after?.object.metadata.organizationId !== formerOrganizationId;
    if (changesOrganization && formerOrganizationId !== undefined) order.remove(formerOrganizationId, id);
    if (after === undefined) objects.delete(id);
    else {
      objects.set(id, after);
      if (changesOrganization) order.add(after.object.metadata.organizationId, id);
    }
    for (const entries of indexes.values()) entries.update(id, before?.object, after?.object);
    for (const onChange of subscribers) onChange(id, before?.object);
  }

  function applyListing(listed: Map<string, Stored<R>>): void {
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
      if (listing !== undefined) applyListing(listing);
      revision = to;
      markReady();
      waits.advanced();
    },
  });
  const progress: RevisionProgress = { revision: () => revision, requestProgress: watch.requestProgress };

  return {
    get: (id) => objects.get(id),
    async getCurrent(id, signal) {
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
      let at = ids.indexAfter(after);
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
    untilRevision: (target, timeoutMs) => waits.untilRevision(progress, target, timeoutMs),
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

/** The object ids of one kind under the keys of one index. */
interface IndexEntries<R> {
  /** Call for each created, changed or deleted object. */
  update(id: string, before: R | undefined, after: R | undefined): void;
  /** Ids in order, which is creation order for ids that the platform generates. */
  under(key: string): readonly string[];
  keys(): IterableIterator<string>;
}

function createIndexEntries<R>(index: Index<R>): IndexEntries<R> {
  const idsOf = new Map<string, Set<string>>();
  return {
    update(id, before, after) {
      const formerKey = before && index(before);
      const key = after && index(after);
      if (formerKey === key) return;
      if (formerKey !== undefined) {
        const ids = idsOf.get(formerKey);
        ids?.delete(id);
        if (ids?.size === 0) idsOf.delete(formerKey);
      }
      if (key === undefined) return;
      const ids = idsOf.get(key) ?? new Set();
      idsOf.set(key, ids.add(id));
    },
    under: (key) => [...(idsOf.get(key) ?? [])].toSorted(),
    keys: () => idsOf.keys(),
  };
}

/** All objects of an organization, in id order. For counts and plans; a response to a user uses `Collection.page`. */
export function ofOrganization<R>(collection: Pick<Collection<R>, "page">, organizationId: string): R[] {
  const all = { after: undefined, limit: Number.POSITIVE_INFINITY, organizationId };
  const { items } = collection.page(() => true, all, { maxScanned: Number.POSITIVE_INFINITY });
  return items.map(({ object }) => object);
}
