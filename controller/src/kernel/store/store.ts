/**
 * The key-value store of the control plane: etcd, as JSON values with revisions. Only this folder imports the etcd
 * client. Calls throw HoldfastError STORE_UNAVAILABLE when etcd does not respond within their deadline.
 */
export interface Store {
  get(key: string, signal?: AbortSignal): Promise<StoredValue | undefined>;
  /**
   * One page in key order, from the key `after` (exclusive) on; `limit` is at most 500. Throws RevisionCompacted when
   * `revision` was compacted.
   */
  list(
    prefix: string,
    page: { after?: string; limit: number; revision?: bigint },
    signal?: AbortSignal,
  ): Promise<StoredPage>;
  /** Commits all changes or none; at most 128 keys. `committed` is false if a condition failed. */
  commit(transaction: Transaction, signal?: AbortSignal): Promise<Committed>;
  /** The current revision of the store, by a linearizable read. */
  revision(signal?: AbortSignal): Promise<bigint>;
  /**
   * Delivers every key of the prefix (in pages of 500), then `synced`, then each change in order. After a compaction or
   * a long outage it starts over with `reset`. It retries until it is closed.
   */
  watch(prefix: string, handler: WatchHandler): StoreWatch;
  /**
   * A lease that renews itself. `lost` resolves when it may have ended, counted from the sending of the last renewal.
   */
  lease(ttlS: number): Promise<Lease>;
  close(): Promise<void>;
}

export interface StoredValue {
  readonly key: string;
  readonly value: string;
  /** Revision of the last change, for compare-and-set. */
  readonly modRevision: bigint;
  readonly createRevision: bigint;
  /** True if the key is attached to a lease: it describes a live process, and snapshots omit it. */
  readonly leased: boolean;
}

export interface StoredPage {
  readonly values: readonly StoredValue[];
  readonly revision: bigint;
  readonly more: boolean;
}

export interface Transaction {
  /** Each key must have this mod revision; 0n: it must not exist. */
  readonly conditions: readonly { readonly key: string; readonly modRevision: bigint }[];
  readonly puts: readonly { readonly key: string; readonly value: string; readonly lease?: Lease }[];
  readonly deletes: readonly string[];
}

export type Committed = { readonly committed: true; readonly revision: bigint } | { readonly committed: false };

export interface WatchHandler {
  reset(): void;
  put(value: StoredValue): void;
  delete(key: string, revision: bigint): void;
  /** All changes up to this revision were delivered. Called after the first listing and after each batch. */
  synced(revision: bigint): void;
}

export interface Watch {
  close(): void;
}

/** A watch of the store whose progress can be requested while nothing changes under its prefix. */
export interface StoreWatch extends Watch {
  /** Makes etcd report its current revision, which calls `synced`. */
  requestProgress(): void;
  /** Leaves a stream that is silent: lists everything again, from any member that responds. */
  listAgain(): void;
}

/** The requested revision was compacted: start over at the newest revision. */
export class RevisionCompacted extends Error {
  override readonly name = "RevisionCompacted";
}

export interface Lease {
  readonly id: string;
  readonly live: boolean;
  readonly lost: Promise<void>;
  revoke(): Promise<void>;
}
