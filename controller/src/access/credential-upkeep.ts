import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "../store/collection.ts";
import { type Kind, keyOf, type Resource, type Stored } from "../store/resource.ts";
import type { Store } from "../store/store.ts";
import type { ApiKey, CredentialUse, Token } from "./credential.ts";
import type { Membership } from "./membership.ts";
import type { Organization } from "./organization.ts";

/** What is over is shown for another day. */
const shownMs = 86_400_000;
const batch = 100;

/** Removes tokens that ended a day ago, what belonged to organizations that are gone, and notes of use of what is gone. */
export async function sweepCredentials(
  deps: {
    readonly store: Store;
    readonly organizations: Collection<Organization>;
    readonly memberships: Collection<Membership>;
    readonly apiKeys: Collection<ApiKey>;
    readonly tokens: Collection<Token>;
    readonly credentialUses: Collection<CredentialUse>;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): Promise<void> {
  const { store, organizations, memberships, apiKeys, tokens, credentialUses, clock } = deps;
  const due: { key: string; modRevision: bigint }[] = [];
  const collect = <R extends Resource<unknown, unknown>>(
    kind: Kind,
    collection: Collection<R>,
    isDue: (object: R) => boolean,
  ) => {
    for (const { object, modRevision } of collection.values() as IterableIterator<Stored<R>>)
      if (isDue(object)) due.push({ key: keyOf(kind, object.metadata.id), modRevision });
  };
  const isOrphan = ({ metadata }: Resource<unknown, unknown>) =>
    organizations.get(metadata.organizationId) === undefined;
  const over = clock.now() - shownMs;
  collect("membership", memberships, isOrphan);
  collect("api-key", apiKeys, isOrphan);
  collect("token", tokens, (token) => isOrphan(token) || (token.spec.expiresAt ?? Infinity) < over);
  collect(
    "credential-use",
    credentialUses,
    ({ metadata: { id } }) => apiKeys.get(id) === undefined && tokens.get(id) === undefined,
  );
  for (let from = 0; from < due.length; from += batch) {
    const some = due.slice(from, from + batch);
    // What has changed meanwhile is looked at again the next time.
    await store.commit({ conditions: some, puts: [], deletes: some.map(({ key }) => key) }, signal);
  }
}
