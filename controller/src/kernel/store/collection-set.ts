import { type Collection, createCollection } from "./collection.ts";
import type { AnyKind, Kind } from "./kind.ts";
import { createNewestRevision } from "./newest-revision.ts";
import type { Resource } from "./resource.ts";
import { createRevisionWaits, type Progress } from "./revision-waits.ts";
import type { Store } from "./store.ts";

/** The memories of all kinds that this controller knows. */
export interface CollectionSet {
  /** The memory of a kind: the same one however often it is opened. */
  open<R extends Resource<unknown, unknown>>(kind: Kind<R>): Collection<R>;
  /** Every kind that is open, with its memory. */
  all(): readonly OpenKind[];
  /** Resolves when the first listing of each is in. */
  ready(): Promise<void>;
  /**
   * Resolves when all of them show this revision. Throws INVALID_REQUEST for a revision that etcd has not reached, and
   * STORE_UNAVAILABLE after timeoutMs.
   */
  reached(revision: bigint, timeoutMs: number): Promise<void>;
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
  const progressOfAll: Progress = {
    revision() {
      let least: bigint | undefined;
      for (const { collection } of opened.values())
        if (least === undefined || collection.revision < least) least = collection.revision;
      return least ?? 0n;
    },
    ask() {
      for (const { collection } of opened.values()) collection.progress.ask();
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
    async reached(revision, timeoutMs) {
      if (progressOfAll.revision() >= revision) return;
      // A revision that a collection shows is known to exist; etcd is asked only about newer ones.
      if (!collections().some((collection) => collection.revision >= revision)) await newest.require(revision);
      await waits.reached(progressOfAll, revision, timeoutMs);
    },
    close() {
      for (const collection of collections()) collection.close();
    },
  };
}
