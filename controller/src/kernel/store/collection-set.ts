import { HoldfastError } from "@holdfast/common/errors.ts";
import { type Collection, createCollection } from "./collection.ts";
import type { AnyKind, Kind } from "./kind.ts";
import type { Resource } from "./resource.ts";
import { createRevisionWaits, type RevisionProgress } from "./revision-waits.ts";
import type { Store } from "./store.ts";

/** The in-memory collections of all kinds that this controller has opened. */
export interface CollectionSet {
  /** The collection of a kind; repeated calls for one kind return the same collection. */
  open<R extends Resource<unknown, unknown>>(kind: Kind<R>): Collection<R>;
  /** Every open kind with its collection. */
  all(): readonly OpenKind[];
  /** Resolves when the first listing of every open kind is loaded. */
  ready(): Promise<void>;
  /**
   * Resolves when every collection has loaded this revision. Throws INVALID_REQUEST for a revision beyond etcd's, and
   * STORE_UNAVAILABLE after timeoutMs.
   */
  untilRevision(revision: bigint, timeoutMs: number): Promise<void>;
  close(): void;
}

export interface OpenKind {
  readonly kind: AnyKind;
  readonly collection: Collection<Resource<unknown, unknown>>;
}

export function createCollectionSet(store: Store): CollectionSet {
  const newest = createNewestRevision(store);
  const opened = new Map<string, OpenKind>();
  const waits = createRevisionWaits();
  const progressOfAll: RevisionProgress = {
    revision() {
      let lowest: bigint | undefined;
      for (const { collection } of opened.values())
        if (lowest === undefined || collection.revision < lowest) lowest = collection.revision;
      return lowest ?? 0n;
    },
    requestProgress() {
      for (const { collection } of opened.values()) collection.progress.requestProgress();
    },
  };
  const collections = () => [...opened.values()].map(({ collection }) => collection);
  return {
    open<R extends Resource<unknown, unknown>>(kind: Kind<R>): Collection<R> {
      const before = opened.get(kind.name);
      if (before !== undefined) return before.collection as Collection<R>;
      const collection = createCollection(store, kind, waits);
      opened.set(kind.name, { kind, collection });
      return collection;
    },
    all: () => [...opened.values()],
    async ready() {
      await Promise.all(collections().map((collection) => collection.ready));
    },
    async untilRevision(revision, timeoutMs) {
      if (progressOfAll.revision() >= revision) return;
      // A revision that a collection has loaded exists; etcd is queried about newer ones only.
      if (!collections().some((collection) => collection.revision >= revision)) await newest.require(revision);
      await waits.untilRevision(progressOfAll, revision, timeoutMs);
    },
    close() {
      for (const collection of collections()) collection.close();
    },
  };
}

/** Checks that a revision exists in etcd. */
export interface NewestRevision {
  /** Throws INVALID_REQUEST for a revision beyond etcd's, STORE_UNAVAILABLE when etcd does not respond. */
  require(revision: bigint): Promise<void>;
}

/** Concurrent callers share one query to etcd; callers that arrive during it share the next one. */
export function createNewestRevision(store: Pick<Store, "revision">): NewestRevision {
  let highest = 0n;
  let inFlight: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  async function query(): Promise<void> {
    const newest = await store.revision();
    if (newest > highest) highest = newest;
  }

  /**
   * Starts a new query for this caller: a query that began before the call may return an older revision than the caller
   * saw.
   */
  function queryFromNow(): Promise<void> {
    if (inFlight === undefined) {
      inFlight = query().finally(() => {
        inFlight = undefined;
      });
      return inFlight;
    }
    next ??= inFlight
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return queryFromNow();
      });
    return next;
  }

  return {
    async require(revision) {
      if (revision <= highest) return;
      await queryFromNow();
      if (revision <= highest) return;
      const detail = "is not a revision of the store: use the value of an earlier response";
      const errors = [{ field: "Holdfast-Revision", pointer: null, code: "invalid_revision", detail }];
      throw new HoldfastError("INVALID_REQUEST", `Holdfast-Revision ${detail}`, { errors });
    },
  };
}
