import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { type ApiKey, type CredentialUse, credentialUseKind, type Token, tokenKind } from "./credential.ts";
/** What is over is shown for another day. */
const shownMs = 86_400_000;
const batch = 100;

/** Removes tokens that ended a day ago, and records of use of deleted credentials. */
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
  const over = clock.now() - shownMs;
  for (const { object, modRevision } of tokens.values())
    if ((object.spec.expiresAt ?? Infinity) < over)
      due.push({ key: keyOf(tokenKind, object.metadata.id), modRevision });
  for (const { object, modRevision } of credentialUses.values()) {
    const { id } = object.metadata;
    if (apiKeys.get(id) === undefined && tokens.get(id) === undefined)
      due.push({ key: keyOf(credentialUseKind, id), modRevision });
  }
  for (let from = 0; from < due.length; from += batch) {
    const some = due.slice(from, from + batch);
    // What has changed meanwhile is looked at again the next time.
    await store.commit({ conditions: some, puts: [], deletes: some.map(({ key }) => key) }, signal);
  }
}
