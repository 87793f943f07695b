import type { Collection } from "#kernel/store/collection.ts";
import { roleMessages } from "./member-handlers.ts";
import type { Memberships } from "./membership.ts";
import type { Organization } from "./organization.ts";

/** Maximum number of organizations in one response. */
const organizationsMax = 200;

/** The first 200 organizations of a user, with the user's role in each. */
export function organizationsOf(
  { memberships, organizations }: { memberships: Memberships; organizations: Pick<Collection<Organization>, "get"> },
  userId: string,
) {
  return memberships
    .of(userId)
    .slice(0, organizationsMax)
    .flatMap(({ metadata: { organizationId }, spec }) => {
      const organization = organizations.get(organizationId)?.object;
      if (organization === undefined) return [];
      return [{ id: organizationId, name: organization.metadata.name, role: roleMessages[spec.role] }];
    });
}
