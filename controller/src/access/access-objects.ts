import type { Collection } from "#kernel/store/collection.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { ApiKey, CredentialUse, Token, User } from "./credential/credential.ts";
import type { SignInSources } from "./user/known-sources.ts";
import type { Membership } from "./organization/membership.ts";
import type { Organization } from "./organization/organization.ts";

/** The objects of this folder, and the objects that tokens may be limited to. */
export interface AccessObjects {
  readonly organizations: Collection<Organization>;
  readonly memberships: Collection<Membership>;
  readonly users: Collection<User>;
  readonly apiKeys: Collection<ApiKey>;
  readonly tokens: Collection<Token>;
  readonly credentialUses: Collection<CredentialUse>;
  readonly signInSources: Collection<SignInSources>;
  readonly services: Collection<Resource<unknown, unknown>>;
}
