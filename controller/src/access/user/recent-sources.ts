import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { hashPurposes, type User, userKind } from "../credential/credential.ts";
import type { RecentSources } from "./sign-in-guard.ts";

/** Networks from which a user has signed in. Its id is the user name. */
export type SignInSources = Resource<{ readonly sources: readonly SeenSource[] }, Readonly<Record<string, never>>>;

interface SeenSource {
  /** Keyed hash of the network, so that the store does not reveal where users are. */
  readonly hash: string;
  readonly at: number;
}

export const signInSourcesKind = defineKind<SignInSources>("sign-in-sources");

const recentMs = 30 * 86_400_000;
/** A source that was recorded within this time is not written again. */
const refreshMs = 7 * 86_400_000;
/** Maximum number of networks of a user; the oldest are dropped. */
const sourcesMax = 16;
const pendingMax = 10_000;

/**
 * Recent sources of sign-ins, stored for other replicas and restarts. A source whose write fails is recorded by a later
 * sign-in.
 */
export function createRecentSources(deps: {
  readonly store: Store;
  readonly signInSources: Collection<SignInSources>;
  readonly users: Pick<Collection<User>, "get">;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
}): RecentSources {
  const { store, signInSources, users, sealer, clock, log } = deps;
  /** Sources that were recorded here and may not be in the collection yet. */
  const pending = new Map<string, number>();
  const hashOf = (account: string, source: string) => sealer.keyedHash(hashPurposes.source, `${account} ${source}`);

  function seenAt(account: string, hash: string): number {
    const stored = signInSources.get(account)?.object.spec.sources.find((seen) => seen.hash === hash)?.at ?? 0;
    return Math.max(stored, pending.get(hash) ?? 0);
  }

  async function write(account: string, hash: string): Promise<void> {
    const now = clock.now();
    const user = users.get(account);
    if (user === undefined) return;
    const before = signInSources.get(account);
    const others = (before?.object.spec.sources ?? []).filter((seen) => seen.hash !== hash && seen.at > now - recentMs);
    const after: SignInSources = {
      metadata: before?.object.metadata ?? newMetadata(account, now),
      spec: { sources: [...others, { hash, at: now }].slice(-sourcesMax) },
      status: {},
    };
    const key = keyOf(signInSourcesKind, account);
    // The condition on the user prevents a record for a user who is deleted concurrently.
    const conditions = [
      { key, modRevision: before?.modRevision ?? 0n },
      { key: keyOf(userKind, account), modRevision: user.modRevision },
    ];
    const done = await store.commit({ conditions, puts: [{ key, value: JSON.stringify(after) }], deletes: [] });
    if (!done.committed) pending.delete(hash);
  }

  return {
    has: (account, source) => seenAt(account, hashOf(account, source)) > clock.now() - recentMs,
    record(account, source) {
      const hash = hashOf(account, source);
      const now = clock.now();
      if (seenAt(account, hash) > now - refreshMs || users.get(account) === undefined) return;
      if (pending.size >= pendingMax) pending.clear();
      pending.set(hash, now);
      write(account, hash).catch((error: unknown) => {
        log.warn("source of a sign-in not recorded", { error });
      });
    },
  };
}
