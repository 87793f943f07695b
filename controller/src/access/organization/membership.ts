import type { Collection } from "#kernel/store/collection.ts";
import type { Resource, Stored } from "#kernel/store/resource.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { Role } from "../scopes.ts";

/** Membership of a user in an organization. Its name is the user name. */
export type Membership = Resource<{ readonly role: Role }, Readonly<Record<string, never>>>;

export const membershipKind = defineKind<Membership>("membership", {
  deletedWithOrganization: true,
  quotas: [{ name: "members", label: "members", limit: 200 }],
});

/** Id of the membership of a user in an organization: `<organization>.<user>`. */
export function membershipId(organizationId: string, userId: string): string {
  return `${organizationId}.${userId}`;
}

/** Memberships by user, and by organization and user. */
export interface Memberships {
  of(userId: string): readonly Membership[];
  get(organizationId: string, userId: string): Stored<Membership> | undefined;
  close(): void;
}

export function createMemberships(
  collection: Pick<Collection<Membership>, "get" | "values" | "subscribe">,
): Memberships {
  const byUser = new Map<string, Set<string>>();
  const update = (id: string) => {
    // The id of an organization has no dot.
    const userId = id.slice(id.indexOf(".") + 1);
    const ids = byUser.get(userId) ?? new Set();
    if (collection.get(id) === undefined) ids.delete(id);
    else ids.add(id);
    if (ids.size === 0) byUser.delete(userId);
    else byUser.set(userId, ids);
  };
  const watch = collection.subscribe(update);
  for (const { object } of collection.values()) update(object.metadata.id);
  return {
    of: (userId) => [...(byUser.get(userId) ?? [])].flatMap((id) => collection.get(id)?.object ?? []),
    get: (organizationId, userId) => collection.get(membershipId(organizationId, userId)),
    close: watch.close,
  };
}
