import type { Collection } from "../store/collection.ts";
import type { Resource } from "../store/resource.ts";
import type { ApiKey, CredentialUse, Token, User } from "./credential/credential.ts";
import type { Membership } from "./organization/membership.ts";
import type { Organization } from "./organization/organization.ts";

/** The objects that this folder is about, and what it counts of others for the quotas of an organization. */
export interface AccessObjects {
  readonly organizations: Collection<Organization>;
  readonly memberships: Collection<Membership>;
  readonly users: Collection<User>;
  readonly apiKeys: Collection<ApiKey>;
  readonly tokens: Collection<Token>;
  readonly credentialUses: Collection<CredentialUse>;
  readonly services: Collection<Resource<{ readonly storageSizeGb: number }, unknown>>;
  readonly webhooks: Collection<Resource<unknown, unknown>>;
}
