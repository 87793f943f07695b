import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { CollectionSet } from "#kernel/store/collection-set.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { organizationKind } from "./organization.ts";

const batch = 100;

/**
 * Deletes the objects of deleted organizations, of each kind with `deletedWithOrganization`. They are void from the
 * deletion of the organization on, so after a crash at any point the next run deletes the rest. Objects of the platform
 * have no organization, and are not deleted here.
 */
export function createOrganizationCascade(deps: {
  readonly store: Store;
  readonly kinds: Pick<CollectionSet, "all" | "open">;
}): ControlLoop {
  const { store } = deps;
  const organizations = deps.kinds.open(organizationKind);
  const kindsToDelete = () => deps.kinds.all().filter(({ kind }) => kind.deletedWithOrganization);

  /** True for the id of a deleted organization, or of a new one that the collection does not include yet. */
  const isAbsent = (organizationId: string) => organizationId !== "" && organizations.get(organizationId) === undefined;

  function* orphanOwners(): Generator<string> {
    const seen = new Set<string>();
    for (const { collection } of kindsToDelete()) {
      for (const { object } of collection.values()) {
        const { organizationId } = object.metadata;
        if (seen.has(organizationId) || !isAbsent(organizationId)) continue;
        seen.add(organizationId);
        yield organizationId;
      }
    }
  }

  return {
    reconciler: {
      name: "organization-cascade",
      async reconcile(organizationId, signal) {
        if (!isAbsent(organizationId)) return settled;
        const remaining = kindsToDelete().flatMap(({ kind, collection }) =>
          collection
            .page(() => true, { after: undefined, limit: batch, organizationId })
            .items.map(({ object, modRevision }) => ({ key: keyOf(kind, object.metadata.id), modRevision })),
        );
        const chunk = remaining.slice(0, batch);
        if (chunk.length === 0) return settled;
        // The collection of organizations may lag behind those of their objects: only the store proves that an
        // organization is absent.
        const organizationAbsent = { key: keyOf(organizationKind, organizationId), modRevision: 0n };
        const deletes = chunk.map(({ key }) => key);
        await store.commit({ conditions: [organizationAbsent, ...chunk], puts: [], deletes }, signal);
        return again(100, "there may be more");
      },
    },
    keys: orphanOwners,
    subscribe: (onChange) => organizations.subscribe(onChange),
  };
}
