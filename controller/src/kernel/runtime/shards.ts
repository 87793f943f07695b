import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Collection } from "../store/collection.ts";
import { createMirror } from "../store/mirror.ts";
import { root } from "../store/resource.ts";
import type { Lease, Store } from "../store/store.ts";
import type { Membership } from "./membership.ts";
import { type Ownership, ownerOf, shardCount, shardOf } from "./ownership.ts";

/**
 * The keys, in shards, shared out among the controllers that listen for agents: each shard has a claim in etcd under
 * its owner's lease.
 */
export interface Shards extends Ownership {
  close(): void;
}

interface Held {
  readonly modRevision: bigint;
  readonly lease: Lease;
  readonly ending: AbortController;
  busy: number;
  onIdle: (() => void) | undefined;
}

/** A claim as etcd has it. */
interface Claim {
  readonly modRevision: bigint;
  /** Under which it was made; undefined for one of an older version. */
  readonly lease: string | undefined;
}

const prefix = `${root}/shard/`;
const idOfShard = (shard: number) => String(shard).padStart(2, "0");
const keyOfShard = (shard: number) => prefix + idOfShard(shard);
const shards = Array.from({ length: shardCount }, (_, shard) => shard);
const retryMs = 500;
/** Longer and the rest waits too, such as giving shards to others. */
const remembersWithinMs = 1_000;

interface Deps {
  readonly store: Store;
  readonly membership: Membership;
  /** The memory that workers on keys read: a shard's claim comes after all that its last owner knew and wrote. */
  readonly memory: Pick<Collection<unknown>, "reached">;
  readonly log: Log;
}

export function createShards({ store, membership, memory, log }: Deps): Shards {
  const closed = new AbortController();
  const held = new Map<number, Held>();
  /** Shards given up whose work has not ended or whose claim is not removed. */
  const leaving = new Map<number, Promise<void>>();
  /** Asked for under this lease without an answer: etcd may have the claim. */
  const unsure = new Map<number, Lease>();
  /** Ours in etcd, but not worked on until the memory has all earlier changes. */
  const claimed = new Map<number, { readonly modRevision: bigint; readonly lease: Lease }>();
  const gains = new Set<() => void>();
  let isBalancing = false;
  let changed = false;

  const claims = createMirror<Claim>(
    store,
    prefix,
    ({ modRevision, value }) => ({ modRevision, lease: (JSON.parse(value) as { lease?: string }).lease }),
    () => {
      for (const [shard, { modRevision }] of held) {
        if (claims.revision >= modRevision && claims.get(idOfShard(shard))?.modRevision !== modRevision) {
          endWork(shard, "its claim is gone");
        }
      }
      balance();
    },
  );
  const memberWatch = membership.subscribe(() => {
    for (const [shard, { lease }] of held) if (!lease.live) endWork(shard, "the lease has ended");
    balance();
  });

  /** From here on nothing may be done for the shard. */
  function endWork(shard: number, reason: string): Held | undefined {
    const ended = held.get(shard);
    held.delete(shard);
    ended?.ending.abort(new Error(reason));
    return ended;
  }

  function balance(): void {
    changed = true;
    if (isBalancing) return;
    isBalancing = true;
    inBackground(log, "balance of the shards", balanceWhileChanged());
  }

  async function balanceWhileChanged(): Promise<void> {
    while (changed && !closed.signal.aborted) {
      changed = false;
      try {
        await balanceOnce();
      } catch (error) {
        if (closed.signal.aborted) return;
        log.debug("shards not balanced", { error: String(error) });
        setTimeout(balance, retryMs).unref();
      }
    }
    // In the same turn as the last look at the changes: a later change begins anew.
    isBalancing = false;
  }

  async function balanceOnce(): Promise<void> {
    const lease = membership.lease();
    // A controller without an address cannot listen: if it restarts in a loop, it must not take shards each time.
    const members = membership.members().filter(({ address, draining }) => address !== "" && !draining);
    if (lease === undefined || claims.revision === 0n) return;
    takeUnsure(lease);
    const wanted = shards.filter((shard) => ownerOf(shard, ids(members)) === membership.id);
    for (const shard of held.keys()) if (!wanted.includes(shard)) giveAway(shard);
    const free = wanted.filter(
      (shard) => ![held, claimed, leaving].some((ours) => ours.has(shard)) && !claims.has(idOfShard(shard)),
    );
    if (free.length > 0) await claim(free, lease);
    await holdClaimed(lease);
  }

  /** Takes over claims whose answer was lost: while our lease lives, no other controller gets them. */
  function takeUnsure(lease: Lease): void {
    for (const [shard, under] of unsure) {
      const claim = claims.get(idOfShard(shard));
      // What was claimed under another lease goes with that.
      if (under !== lease) unsure.delete(shard);
      else if (claim?.lease === lease.id) noteClaimed([shard], claim.modRevision, lease);
    }
  }

  function noteClaimed(taken: readonly number[], modRevision: bigint, lease: Lease): void {
    for (const shard of taken) {
      unsure.delete(shard);
      claimed.set(shard, { modRevision, lease });
    }
  }

  async function claim(free: readonly number[], lease: Lease): Promise<void> {
    const value = JSON.stringify({ owner: membership.id, lease: lease.id });
    for (const shard of free) unsure.set(shard, lease);
    const done = await store.commit(
      {
        conditions: free.map((shard) => ({ key: keyOfShard(shard), modRevision: 0n })),
        puts: free.map((shard) => ({ key: keyOfShard(shard), value, lease })),
        deletes: [],
      },
      closed.signal,
    );
    if (!done.committed) {
      // One of them has an owner that we have not heard of: take the others one by one.
      if (free.length > 1) for (const shard of free) await claim([shard], lease);
      return;
    }
    noteClaimed(free, done.revision, lease);
  }

  /** A claimed shard is not worked on until this controller knows all that its owner before wrote. */
  async function holdClaimed(lease: Lease): Promise<void> {
    for (const [shard, { lease: under }] of claimed) if (under !== lease) claimed.delete(shard);
    if (claimed.size === 0) return;
    const revisions = [...claimed.values()].map(({ modRevision }) => modRevision);
    await memory.reached(
      revisions.reduce((a, b) => (a > b ? a : b)),
      remembersWithinMs,
    );
    if (!lease.live) return;
    const taken = claimed.size;
    for (const [shard, { modRevision }] of claimed)
      held.set(shard, { modRevision, lease, ending: new AbortController(), busy: 0, onIdle: undefined });
    claimed.clear();
    log.info("shards taken", { taken, held: held.size });
    for (const tell of gains) tell();
  }

  function giveAway(shard: number): void {
    const ended = endWork(shard, "another controller takes over");
    if (ended === undefined) return;
    const gone = removeClaim(shard, ended).finally(() => {
      leaving.delete(shard);
      balance();
    });
    leaving.set(shard, gone);
  }

  async function removeClaim(shard: number, ended: Held): Promise<void> {
    if (ended.busy > 0) {
      await new Promise<void>((resolve) => {
        ended.onIdle = resolve;
      });
    }
    const key = keyOfShard(shard);
    while (ended.lease.live && !closed.signal.aborted) {
      try {
        await store.commit({ conditions: [{ key, modRevision: ended.modRevision }], puts: [], deletes: [key] });
        return;
      } catch (error) {
        log.debug("claim not removed", { shard, error: String(error) });
        await delay(retryMs);
      }
    }
  }

  return {
    owns: (key) => held.get(shardOf(key))?.lease.live === true,
    begin(key) {
      const shard = shardOf(key);
      const work = held.get(shard);
      if (work === undefined || !work.lease.live) return undefined;
      work.busy += 1;
      let ended = false;
      return {
        signal: work.ending.signal,
        claim: { key: keyOfShard(shard), modRevision: work.modRevision },
        end() {
          if (ended) return;
          ended = true;
          work.busy -= 1;
          if (work.busy === 0) work.onIdle?.();
        },
      };
    },
    subscribe(onGain) {
      gains.add(onGain);
      return { close: () => gains.delete(onGain) };
    },
    close() {
      for (const shard of held.keys()) endWork(shard, "the controller stops");
      closed.abort(new Error("the controller stops"));
      claims.close();
      memberWatch.close();
    },
  };
}

function ids(members: readonly { readonly id: string }[]): string[] {
  return members.map(({ id }) => id);
}
