import { again, settled } from "../../runtime/reconciler.ts";
import type { Reconciled } from "../../runtime/runner.ts";
import type { Collection } from "../../store/collection.ts";
import { keyOf, type Kind, type Resource } from "../../store/resource.ts";
import type { Store } from "../../store/store.ts";
import type { AccessObjects } from "../access-objects.ts";

const batch = 100;

/**
 * Removes what organizations leave behind that are gone: memberships, keys, tokens, notes of their use, webhooks. They are good for nothing
 * from the moment in which the organization went, so a crash at any line only leaves them for the next look.
 */
export function createOrganizationRemains(
  deps: Pick<AccessObjects, "organizations" | "memberships" | "apiKeys" | "tokens" | "webhooks" | "credentialUses"> & {
    readonly store: Store;
  },
): Reconciled {
  const { store, organizations } = deps;
  const holders: readonly (readonly [Kind, Collection<Resource<unknown, unknown>>])[] = [
    ["membership", deps.memberships],
    ["api-key", deps.apiKeys],
    ["token", deps.tokens],
    ["webhook", deps.webhooks],
    ["credential-use", deps.credentialUses],
  ];

  function* orphanOwners(): Generator<string> {
    const seen = new Set<string>();
    for (const [, collection] of holders) {
      for (const { object } of collection.values()) {
        const { organizationId } = object.metadata;
        if (seen.has(organizationId) || organizations.get(organizationId) !== undefined) continue;
        seen.add(organizationId);
        yield organizationId;
      }
    }
  }

  return {
    reconciler: {
      name: "organization-remains",
      async reconcile(organizationId, signal) {
        if (organizations.get(organizationId) !== undefined) return settled;
        const left = holders.flatMap(([kind, collection]) =>
          collection
            .page(() => true, { after: undefined, limit: batch, organizationId })
            .items.map(({ object, modRevision }) => ({ key: keyOf(kind, object.metadata.id), modRevision })),
        );
        const some = left.slice(0, batch);
        if (some.length === 0) return settled;
        // The memory of organizations may be behind that of what they have: only the store says that one is not there.
        const gone = { key: keyOf("organization", organizationId), modRevision: 0n };
        const deletes = some.map(({ key }) => key);
        await store.commit({ conditions: [gone, ...some], puts: [], deletes }, signal);
        return again(100, "there may be more");
      },
    },
    keys: orphanOwners,
    subscribe: (onChange) => organizations.subscribe(onChange),
  };
}
