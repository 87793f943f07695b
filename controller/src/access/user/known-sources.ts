import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { hashPurposes, type User, userKind } from "../credential/credential.ts";
import type { KnownSources } from "./sign-in-guard.ts";

/** Where a person has signed in from. Id is the user name. */
export type SignInSources = Resource<{ readonly sources: readonly Seen[] }, Readonly<Record<string, never>>>;

interface Seen {
  /** Keyed hash of the network: a reader of the store does not learn where people are. */
  readonly hash: string;
  readonly at: number;
}

export const signInSourcesKind = defineKind<SignInSources>("sign-in-sources");

const knownMs = 30 * 86_400_000;
/** What was noted within a week is not written again. */
const noteAgainMs = 7 * 86_400_000;
/** Networks of one person; the oldest go. */
const keptMax = 16;
const notedMax = 10_000;

/**
 * Kept in the store, so that a restart keeps all sources. A source that cannot be written now is noted at a later
 * sign-in.
 */
export function createKnownSources(deps: {
  readonly store: Store;
  readonly signInSources: Collection<SignInSources>;
  readonly users: Pick<Collection<User>, "get">;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
}): KnownSources {
  const { store, signInSources, users, sealer, clock, log } = deps;
  /** What was noted here and may not be in memory yet. */
  const noted = new Map<string, number>();
  const hashOf = (account: string, source: string) => sealer.keyedHash(hashPurposes.source, `${account} ${source}`);

  function seenAt(account: string, hash: string): number {
    const stored = signInSources.get(account)?.object.spec.sources.find((seen) => seen.hash === hash)?.at ?? 0;
    return Math.max(stored, noted.get(hash) ?? 0);
  }

  async function write(account: string, hash: string): Promise<void> {
    const now = clock.now();
    const user = users.get(account);
    if (user === undefined) return;
    const before = signInSources.get(account);
    const others = (before?.object.spec.sources ?? []).filter((seen) => seen.hash !== hash && seen.at > now - knownMs);
    const after: SignInSources = {
      metadata: before?.object.metadata ?? newMetadata(account, now),
      spec: { sources: [...others, { hash, at: now }].slice(-keptMax) },
      status: {},
    };
    const key = keyOf(signInSourcesKind, account);
    // A person who is deleted meanwhile gets no record.
    const conditions = [
      { key, modRevision: before?.modRevision ?? 0n },
      { key: keyOf(userKind, account), modRevision: user.modRevision },
    ];
    const done = await store.commit({ conditions, puts: [{ key, value: JSON.stringify(after) }], deletes: [] });
    if (!done.committed) noted.delete(hash);
  }

  return {
    has: (account, source) => seenAt(account, hashOf(account, source)) > clock.now() - knownMs,
    note(account, source) {
      const hash = hashOf(account, source);
      const now = clock.now();
      if (seenAt(account, hash) > now - noteAgainMs || users.get(account) === undefined) return;
      if (noted.size >= notedMax) noted.clear();
      noted.set(hash, now);
      write(account, hash).catch((error: unknown) => {
        log.warn("source of a sign-in not noted", { error });
      });
    },
  };
}
