import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { type ApiKey, type CredentialUse, credentialUseKind, type Token, tokenKind } from "./credential.ts";
/** Expired credentials stay visible for another day. */
const expiredRetentionMs = 86_400_000;
const batch = 100;

/** Deletes tokens that expired a day ago, and use records of deleted credentials. */
export async function sweepCredentials(
  deps: {
    readonly store: Store;
    readonly apiKeys: Collection<ApiKey>;
    readonly tokens: Collection<Token>;
    readonly credentialUses: Collection<CredentialUse>;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): Promise<void> {
  const { store, apiKeys, tokens, credentialUses, clock } = deps;
  const due: { key: string; modRevision: bigint }[] = [];
  const expiredBefore = clock.now() - expiredRetentionMs;
  for (const { object, modRevision } of tokens.values())
    if ((object.spec.expiresAt ?? Infinity) < expiredBefore)
      due.push({ key: keyOf(tokenKind, object.metadata.id), modRevision });
  for (const { object, modRevision } of credentialUses.values()) {
    const { id } = object.metadata;
    if (apiKeys.get(id) === undefined && tokens.get(id) === undefined)
      due.push({ key: keyOf(credentialUseKind, id), modRevision });
  }
  for (let from = 0; from < due.length; from += batch) {
    const chunk = due.slice(from, from + batch);
    // A conflict leaves the chunk for the next sweep.
    await store.commit({ conditions: chunk, puts: [], deletes: chunk.map(({ key }) => key) }, signal);
  }
}
