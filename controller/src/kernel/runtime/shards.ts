import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Collection } from "../store/collection.ts";
import { createMirror } from "../store/mirror.ts";
import { root } from "../store/resource.ts";
import type { Lease, Store } from "../store/store.ts";
import type { ControllerRegistry } from "./controller-registry.ts";
import { type Ownership, shardOwnerOf, shardCount, shardOf } from "./ownership.ts";

/**
 * Distributes the keys over the controllers that listen for agents. Keys are hashed to shards, and rendezvous hashing
 * assigns each shard to one controller. The owner claims it by a key in etcd under its lease. It starts work once its
 * collections include everything up to the claim, and another controller claims the shard only after the former owner
 * has ended its work and deleted its claim, or its lease has expired.
 */
export interface Shards extends Ownership {
  close(): void;
}

interface OwnedShard {
  readonly modRevision: bigint;
  readonly lease: Lease;
  readonly ending: AbortController;
  busy: number;
  onIdle: (() => void) | undefined;
}

/** A claim in etcd. */
interface Claim {
  readonly modRevision: bigint;
  /** Id of the lease under which it was created. */
  readonly lease: string;
}

const prefix = `${root}/shard/`;
const idOfShard = (shard: number) => String(shard).padStart(2, "0");
const keyOfShard = (shard: number) => prefix + idOfShard(shard);
const shards = Array.from({ length: shardCount }, (_, shard) => shard);
const retryDelayMs = 500;
/** Limit of one wait for the collections: a longer wait would delay the release of other shards. */
const catchUpTimeoutMs = 1_000;

interface Deps {
  readonly store: Store;
  readonly controllerRegistry: ControllerRegistry;
  /**
   * The collections that reconcilers read. The revision of a claim is later than all writes of the shard's former
   * owner.
   */
  readonly cache: Pick<Collection<unknown>, "untilRevision">;
  readonly log: Log;
}

export function createShards({ store, controllerRegistry: registry, cache, log }: Deps): Shards {
  const closed = new AbortController();
  const owned = new Map<number, OwnedShard>();
  /** Released shards whose work has not ended, or whose claim is not deleted yet. */
  const releasing = new Map<number, Promise<void>>();
  /** Claims that were sent under a lease and got no response: etcd may have them. */
  const unconfirmed = new Map<number, Lease>();
  /** Shards that are claimed in etcd. Work on them begins once the collections include all earlier changes. */
  const claimed = new Map<number, { readonly modRevision: bigint; readonly lease: Lease }>();
  const gains = new Set<() => void>();
  let isBalancing = false;
  let changed = false;

  const claims = createMirror<Claim>(
    store,
    prefix,
    ({ modRevision, value }) => ({ modRevision, lease: (JSON.parse(value) as Pick<Claim, "lease">).lease }),
    () => {
      for (const [shard, { modRevision }] of owned) {
        if (claims.revision >= modRevision && claims.get(idOfShard(shard))?.modRevision !== modRevision) {
          endWork(shard, "its claim was deleted");
        }
      }
      balance();
    },
  );
  const registryWatch = registry.subscribe(() => {
    for (const [shard, { lease }] of owned) if (!lease.live) endWork(shard, "the lease has ended");
    balance();
  });

  /** Ends the ownership: work on the shard must neither begin nor continue after this. */
  function endWork(shard: number, reason: string): OwnedShard | undefined {
    const ended = owned.get(shard);
    owned.delete(shard);
    ended?.ending.abort(new Error(reason));
    return ended;
  }

  function balance(): void {
    changed = true;
    if (isBalancing) return;
    isBalancing = true;
    inBackground(log, "shard balancing", balanceWhileChanged());
  }

  async function balanceWhileChanged(): Promise<void> {
    while (changed && !closed.signal.aborted) {
      changed = false;
      try {
        await balanceOnce();
      } catch (error) {
        if (closed.signal.aborted) return;
        log.debug("shards not balanced", { error: String(error) });
        setTimeout(balance, retryDelayMs).unref();
      }
    }
    // No await since the last check of `changed`, so a later change starts a new run.
    isBalancing = false;
  }

  async function balanceOnce(): Promise<void> {
    const lease = registry.lease();
    // A controller has an address once it listens: a controller that crashes before that must not take shards at each
    // start.
    const members = registry.controllers().filter(({ address, draining }) => address !== "" && !draining);
    if (lease === undefined || claims.revision === 0n) return;
    adoptUnconfirmed(lease);
    const desired = shards.filter((shard) => shardOwnerOf(shard, ids(members)) === registry.id);
    for (const shard of owned.keys()) if (!desired.includes(shard)) release(shard);
    const free = desired.filter(
      (shard) =>
        ![owned, claimed, releasing].some((shardsInUse) => shardsInUse.has(shard)) && !claims.has(idOfShard(shard)),
    );
    if (free.length > 0) await claim(free, lease);
    await activateClaimed(lease);
  }

  /** Adopts claims whose response was lost: while this lease is live, no other controller can own them. */
  function adoptUnconfirmed(lease: Lease): void {
    for (const [shard, claimLease] of unconfirmed) {
      const claim = claims.get(idOfShard(shard));
      // A claim under another lease is deleted with that lease.
      if (claimLease !== lease) unconfirmed.delete(shard);
      else if (claim?.lease === lease.id) recordClaimed([shard], claim.modRevision, lease);
    }
  }

  function recordClaimed(taken: readonly number[], modRevision: bigint, lease: Lease): void {
    for (const shard of taken) {
      unconfirmed.delete(shard);
      claimed.set(shard, { modRevision, lease });
    }
  }

  async function claim(free: readonly number[], lease: Lease): Promise<void> {
    const value = JSON.stringify({ owner: registry.id, lease: lease.id });
    for (const shard of free) unconfirmed.set(shard, lease);
    const done = await store.commit(
      {
        conditions: free.map((shard) => ({ key: keyOfShard(shard), modRevision: 0n })),
        puts: free.map((shard) => ({ key: keyOfShard(shard), value, lease })),
        deletes: [],
      },
      closed.signal,
    );
    if (!done.committed) {
      // One of the shards has an owner that is not mirrored here yet: claim each shard separately.
      if (free.length > 1) for (const shard of free) await claim([shard], lease);
      return;
    }
    recordClaimed(free, done.revision, lease);
  }

  /** Starts ownership of claimed shards once the collections have everything that the former owners wrote. */
  async function activateClaimed(lease: Lease): Promise<void> {
    for (const [shard, { lease: claimLease }] of claimed) if (claimLease !== lease) claimed.delete(shard);
    if (claimed.size === 0) return;
    const revisions = [...claimed.values()].map(({ modRevision }) => modRevision);
    await cache.untilRevision(
      revisions.reduce((a, b) => (a > b ? a : b)),
      catchUpTimeoutMs,
    );
    if (!lease.live) return;
    const taken = claimed.size;
    for (const [shard, { modRevision }] of claimed)
      owned.set(shard, { modRevision, lease, ending: new AbortController(), busy: 0, onIdle: undefined });
    claimed.clear();
    log.info("shards taken", { taken, owned: owned.size });
    for (const onGain of gains) onGain();
  }

  function release(shard: number): void {
    const ended = endWork(shard, "another controller takes over");
    if (ended === undefined) return;
    const removal = removeClaim(shard, ended).finally(() => {
      releasing.delete(shard);
      balance();
    });
    releasing.set(shard, removal);
  }

  async function removeClaim(shard: number, ended: OwnedShard): Promise<void> {
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
        await delay(retryDelayMs);
      }
    }
  }

  return {
    owns: (key) => owned.get(shardOf(key))?.lease.live === true,
    begin(key) {
      const shard = shardOf(key);
      const work = owned.get(shard);
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
      for (const shard of owned.keys()) endWork(shard, "the controller stops");
      closed.abort(new Error("the controller stops"));
      claims.close();
      registryWatch.close();
    },
  };
}

function ids(members: readonly { readonly id: string }[]): string[] {
  return members.map(({ id }) => id);
}
