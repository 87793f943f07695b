import type { Watch } from "../store/store.ts";

/** Which keys this controller may act on now. */
export interface Ownership {
  /** False as soon as the lease behind it may have ended. */
  owns(key: string): boolean;
  /**
   * Begins work on a key of ours; undefined for other keys. No other controller gets the key before `end` is called,
   * unless the lease runs out; then `signal` aborts before it does.
   */
  begin(key: string): Right | undefined;
  /** Calls back when keys have become ours. */
  subscribe(onGain: () => void): Watch;
}

export interface Right {
  readonly signal: AbortSignal;
  /**
   * For `UnitOfWork.onlyWhile`: a write with it cannot come after the right has ended, however late it is. For commits
   * that depend only on the right to act, as those of alerts do. A commit that writes an object needs none: the
   * object's revision guards it. Undefined where there is one controller only.
   */
  readonly claim: { readonly key: string; readonly modRevision: bigint } | undefined;
  end(): void;
}

export const shardCount = 32;

/** The same for every controller and version: a key's shard never changes. */
export function shardOf(key: string): number {
  return hash(key) % shardCount;
}

/**
 * The rightful owner of a shard: the member with the highest hash (rendezvous). A member that comes or goes moves only
 * its own share. Undefined without members.
 */
export function ownerOf(shard: number, members: readonly string[]): string | undefined {
  let best: { id: string; score: number } | undefined;
  for (const id of members) {
    const score = hash(`${shard}/${id}`);
    if (best === undefined || score > best.score || (score === best.score && id > best.id)) best = { id, score };
  }
  return best?.id;
}

/** FNV-1a with murmur3's last step, which spreads keys that differ in few characters. */
export function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
