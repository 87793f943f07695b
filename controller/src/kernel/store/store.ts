/**
 * The key-value truth: etcd, seen as JSON texts with revisions. Nothing else imports the etcd client.
 * Calls throw HoldfastError STORE_UNAVAILABLE when etcd does not answer within their deadline.
 */
export interface Store {
  get(key: string, signal?: AbortSignal): Promise<StoredValue | undefined>;
  /**
   * One page in key order, from the key `after` (exclusive) on. Never a whole prefix in one call: limit is at most 500.
   * Throws RevisionGone when `revision` was compacted.
   */
  list(
    prefix: string,
    page: { after?: string; limit: number; revision?: bigint },
    signal?: AbortSignal,
  ): Promise<StoredPage>;
  /** All of it or nothing, at most 128 keys. Not committed means that a condition did not hold. */
  commit(transaction: Transaction, signal?: AbortSignal): Promise<Committed>;
  /** The revision of the store now, by a linearizable read. */
  revision(signal?: AbortSignal): Promise<bigint>;
  /**
   * First every key of the prefix (pages of 500), then `synced`, then each change in order. After compaction or a long
   * break it starts over with `reset`. It never gives up until closed.
   */
  watch(prefix: string, handler: WatchHandler): StoreWatch;
  /**
   * A lease that renews itself; `lost` resolves when it may have ended, counted from the send of the last good renewal.
   */
  lease(ttlS: number): Promise<Lease>;
  close(): Promise<void>;
}

export interface StoredValue {
  readonly key: string;
  readonly value: string;
  /** Revision of the last change; the condition of a compare-and-set. */
  readonly modRevision: bigint;
  readonly createRevision: bigint;
  /** True when the key goes with a lease: it is about the living, and no snapshot keeps it. */
  readonly leased: boolean;
}

export interface StoredPage {
  readonly values: readonly StoredValue[];
  readonly revision: bigint;
  readonly more: boolean;
}

export interface Transaction {
  /** Key must have this mod revision; 0n means that it must not exist. */
  readonly conditions: readonly { readonly key: string; readonly modRevision: bigint }[];
  readonly puts: readonly { readonly key: string; readonly value: string; readonly lease?: Lease }[];
  readonly deletes: readonly string[];
}

export type Committed = { readonly committed: true; readonly revision: bigint } | { readonly committed: false };

export interface WatchHandler {
  reset(): void;
  put(value: StoredValue): void;
  delete(key: string, revision: bigint): void;
  /** Everything up to this revision has been told. Called after the first listing and after each batch. */
  synced(revision: bigint): void;
}

export interface Watch {
  close(): void;
}

/** A watch of the store, which can be asked how far it is when nothing happens under its prefix. */
export interface StoreWatch extends Watch {
  /** Has `synced` called soon with the store's revision of now. */
  requestProgress(): void;
}

/** The revision asked for is older than the store's oldest one: start over at the newest. */
export class RevisionGone extends Error {
  override readonly name = "RevisionGone";
}

export interface Lease {
  readonly id: string;
  readonly live: boolean;
  readonly lost: Promise<void>;
  revoke(): Promise<void>;
}
