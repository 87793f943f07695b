import type { Watch } from "../store/store.ts";

/** Keys that this controller may act on. */
export interface Ownership {
  /** True if this controller owns the key: false as soon as its lease may have ended. */
  owns(key: string): boolean;
  /**
   * Begins work on an owned key; undefined for other keys. No other controller gets the key before `end` is called,
   * unless the lease expires; `signal` aborts before it does.
   */
  begin(key: string): WorkLease | undefined;
  /** Calls back when this controller gains keys. */
  subscribe(onGain: () => void): Watch;
}

export interface WorkLease {
  readonly signal: AbortSignal;
  /**
   * Condition for `UnitOfWork.onlyWhile`: a commit with it fails once the ownership has ended, however late it arrives.
   * Commits that depend only on ownership need it, such as commits of alerts. A commit that updates an object does not,
   * since the object's revision guards it. Undefined if there is only one controller.
   */
  readonly claim: { readonly key: string; readonly modRevision: bigint } | undefined;
  end(): void;
}

export const shardCount = 32;

/** The shard of a key. It is the same on every controller and in every version. */
export function shardOf(key: string): number {
  return hash(key) % shardCount;
}

/**
 * The owner of a shard by rendezvous hashing: the controller with the highest hash. A controller that is added or
 * removed moves only its own share. Undefined without controllers.
 */
export function shardOwnerOf(shard: number, members: readonly string[]): string | undefined {
  let best: { id: string; score: number } | undefined;
  for (const id of members) {
    const score = hash(`${shard}/${id}`);
    if (best === undefined || score > best.score || (score === best.score && id > best.id)) best = { id, score };
  }
  return best?.id;
}

/** FNV-1a with murmur3's finalizer, which spreads keys that differ in few characters. */
export function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
