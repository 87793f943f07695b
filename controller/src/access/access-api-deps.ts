import type { Clock } from "@holdfast/common/clock.ts";
import type { History } from "#kernel/history/history.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Store } from "#kernel/store/store.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ApiKey, Token, User, CredentialUse } from "./credential/credential.ts";
import type { Session, SessionCode } from "./session/session.ts";
import type { LastUse } from "./credential/last-use.ts";
import type { TokenResourceKind } from "./credential/token-resources.ts";
import type { Membership, Memberships } from "./organization/membership.ts";
import type { Organization } from "./organization/organization.ts";
import type { Quotas } from "./organization/quotas.ts";
import type { ScopeCatalog } from "./scopes.ts";
import type { PasswordCheck } from "./user/password-check.ts";
import type { PasswordHash } from "./user/password-hash.ts";
import type { SetupTokens } from "./user/setup-tokens.ts";
import type { SignInSources } from "./user/recent-sources.ts";

/** Dependencies of the RPCs about access. */
export interface AccessApiDeps {
  readonly store: Pick<Store, "get">;
  readonly begin: () => UnitOfWork;
  readonly organizations: Collection<Organization>;
  readonly membershipObjects: Collection<Membership>;
  readonly memberships: Memberships;
  readonly users: Collection<User>;
  readonly apiKeys: Collection<ApiKey>;
  readonly tokens: Collection<Token>;
  readonly sessions: Collection<Session>;
  readonly sessionCodes: Collection<SessionCode>;
  readonly signInSources: Collection<SignInSources>;
  readonly quotas: Quotas;
  readonly scopeCatalog: ScopeCatalog;
  readonly setupTokens: SetupTokens;
  /** Kinds of objects that a token can be limited to. */
  readonly resources: readonly TokenResourceKind[];
  readonly lastUse: LastUse;
  readonly passwords: PasswordCheck;
  readonly passwordHash: PasswordHash;
  readonly history: Pick<History, "audit">;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Collections of the kinds that the group `access` declares. */
export interface AccessObjects {
  readonly organizations: Collection<Organization>;
  readonly memberships: Collection<Membership>;
  readonly users: Collection<User>;
  readonly apiKeys: Collection<ApiKey>;
  readonly tokens: Collection<Token>;
  readonly sessions: Collection<Session>;
  readonly sessionCodes: Collection<SessionCode>;
  readonly credentialUses: Collection<CredentialUse>;
  readonly signInSources: Collection<SignInSources>;
}
