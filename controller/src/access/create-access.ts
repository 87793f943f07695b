import type { Authenticator, ServedService } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { History } from "#kernel/history/history.ts";
import type { ProcessGauge } from "#kernel/metrics/process-metrics.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { CollectionSet } from "#kernel/store/collection-set.ts";
import type { Store } from "#kernel/store/store.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { AccessApiDeps, AccessObjects } from "./access-api-deps.ts";
import { createAuditApi } from "./audit/audit-log.ts";
import { createAuthenticator } from "./authenticator.ts";
import { createApiKeyApi } from "./credential/api-key-api.ts";
import { createLastUse } from "./credential/last-use.ts";
import { createTokenApi } from "./credential/token-api.ts";
import type { TokenResourceKind } from "./credential/token-resources.ts";
import { createCallerCache } from "./caller-cache.ts";
import { createMemberships } from "./organization/membership.ts";
import { createOrganizationApi } from "./organization/organization-api.ts";
import { createQuotas, type Quotas } from "./organization/quotas.ts";
import type { ScopeCatalog } from "./scopes.ts";
import { createRecentSources } from "./user/recent-sources.ts";
import { createPasswordCheck } from "./user/password-check.ts";
import { createPasswordHash } from "./user/password-hash.ts";
import { createSetupTokens, type SetupTokens } from "./user/setup-tokens.ts";
import { createSignInGuard } from "./user/sign-in-guard.ts";
import { createSessionApi } from "./session/session-api.ts";
import { createSignInCounts } from "./session/sign-in-counts.ts";
import { createUserApi } from "./user/user-api.ts";

/** Authentication of callers, and the RPCs about accounts and credentials. */
export interface Access {
  readonly authenticator: Authenticator;
  readonly services: readonly ServedService[];
  readonly quotas: Quotas;
  readonly setupTokens: SetupTokens;
  readonly metrics: readonly ProcessGauge[];
  close(): Promise<void>;
}

export function createAccess(deps: {
  readonly store: Store;
  readonly collections: AccessObjects;
  readonly kinds: CollectionSet;
  readonly begin: () => UnitOfWork;
  readonly history: Pick<History, "audit">;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly log: Log;
  readonly newId: () => string;
  readonly scopeCatalog: ScopeCatalog;
  /** Kinds of objects that a token can be limited to. */
  readonly resources: readonly TokenResourceKind[];
  /** Groups addresses into sources of sign-in attempts. */
  readonly sources: SourceGroups;
}): Access {
  const { store, collections, sealer, clock, log } = deps;
  const { organizations, users, apiKeys, tokens, sessions, sessionCodes } = collections;
  const memberships = createMemberships(collections.memberships);
  const passwordHash = createPasswordHash(sealer, deps.sources);
  const recentSources = createRecentSources({
    store,
    signInSources: collections.signInSources,
    users,
    sealer,
    clock,
    log,
  });
  const guard = createSignInGuard(clock, { recentSources, sources: deps.sources });
  const passwords = createPasswordCheck({ users, hash: passwordHash, guard, sealer, clock });
  const lastUse = createLastUse({
    store,
    uses: collections.credentialUses,
    exists: (id) => [apiKeys, tokens, sessions].some((credentials) => credentials.get(id) !== undefined),
    clock,
    log,
  });
  const quotas = createQuotas(deps.kinds, clock);
  const setupTokens = createSetupTokens({ users, begin: deps.begin, sealer, clock });
  const api: AccessApiDeps = {
    ...deps,
    quotas,
    setupTokens,
    organizations,
    membershipObjects: collections.memberships,
    memberships,
    signInSources: collections.signInSources,
    users,
    apiKeys,
    tokens,
    sessions,
    sessionCodes,
    lastUse,
    passwords,
    passwordHash,
  };
  const signIns = createSignInCounts();
  return {
    authenticator: createAuthenticator({
      apiKeys,
      tokens,
      sessions,
      users,
      organizations,
      memberships,
      scopeCatalog: deps.scopeCatalog,
      passwords,
      callerCache: createCallerCache([apiKeys, tokens, sessions, users, organizations, collections.memberships], clock),
      onUse: lastUse.record,
      lastUseOf: lastUse.of,
      sealer,
      clock,
    }),
    quotas,
    setupTokens,
    metrics: [
      signIns.metric,
      {
        name: "sessions",
        help: "Browser sessions, including those that expired within the last hour",
        read: () => sessions.size,
      },
    ],
    services: [
      createOrganizationApi(api),
      createUserApi(api),
      createApiKeyApi(api),
      createTokenApi(api),
      createSessionApi({ ...api, signIns }),
      createAuditApi(api),
    ],
    async close() {
      memberships.close();
      await lastUse.close();
    },
  };
}
