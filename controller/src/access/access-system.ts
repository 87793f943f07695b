import type { SourceGroups } from "@holdfast/common/source-groups.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { type AccessObjects } from "./access-objects.ts";
import { type AccessSettings, accessSettings } from "./access-settings.ts";
import { createAuditLog } from "./audit/audit-log.ts";
import { bootstrapAccess } from "./bootstrap.ts";
import { type Access, createAccess } from "./create-access.ts";
import { apiKeyKind, credentialUseKind, tokenKind, userKind } from "./credential/credential.ts";
import { sweepCredentials } from "./credential/credential-upkeep.ts";
import { createOperatorApi } from "./operator/operator-api.ts";
import { membershipKind } from "./organization/membership.ts";
import { createOrganizationAdminApi } from "./organization/organization-admin-api.ts";
import { createOrganizationCascade } from "./organization/organization-cascade.ts";
import { organizationKind } from "./organization/organization.ts";
import type { Rights } from "./scopes.ts";
import { signInSourcesKind } from "./user/known-sources.ts";
import { accessForms } from "./access-forms.ts";

interface AccessSystemDeps {
  /** What tokens may be limited to. */
  readonly services: AccessObjects["services"];
  /** What counts as one source of calls. */
  readonly sources: SourceGroups;
  readonly rights: Rights;
}

const hourMs = 3_600_000;

/** Callers, their rights, and the quotas of their organizations. */
export const accessSystem = declareSystem({
  name: "access",
  settings: accessSettings,
  scopes: {
    org: { rights: ["read", "write"], wholeFrom: "admin" },
    keys: { rights: ["read", "write"], wholeFrom: "admin" },
    audit: { rights: ["read"] },
    organization: { rights: ["delete"], wholeFrom: "owner" },
  },
  audited: {
    "holdfast.v1.OrganizationService": "organization",
    "holdfast.v1.UserService": "user",
    "holdfast.v1.ApiKeyService": "api-key",
    "holdfast.v1.TokenService": "token",
    "holdfast.admin.v1.OrganizationService": "organization",
    "holdfast.admin.v1.OperatorService": "user",
  },
  async prepare(parts, { rights }: AccessSystemDeps, { bootstrapFile }: AccessSettings, signal) {
    if (bootstrapFile !== "") await bootstrapAccess(bootstrapFile, parts, [...rights.roleScopes.owner], signal);
  },
  open: openAccessSystem,
});

function openAccessSystem(
  kernel: Kernel,
  { services, sources, rights }: AccessSystemDeps,
): System<Pick<Access, "authenticator" | "quotas">> {
  const { collections: kinds, store, history, cursors, clock } = kernel;
  const collections: AccessObjects = {
    services,
    organizations: kinds.open(organizationKind),
    memberships: kinds.open(membershipKind),
    users: kinds.open(userKind),
    apiKeys: kinds.open(apiKeyKind),
    tokens: kinds.open(tokenKind),
    credentialUses: kinds.open(credentialUseKind),
    signInSources: kinds.open(signInSourcesKind),
  };
  const access = createAccess({ ...kernel, collections, kinds, sources, rights });
  const auditLog = createAuditLog({ history, cursors });
  const { authenticator, quotas, setUps } = access;
  return {
    name: "access",
    gives: { authenticator, quotas },
    rpcs: [
      ...access.services,
      createOrganizationAdminApi({ ...kernel, ...collections, quotas, rights, auditLog }),
      createOperatorApi({ ...kernel, ...collections, setUps }),
    ],
    forms: accessForms(rights),
    work: [
      createOrganizationCascade({ kinds, store }),
      createPeriodic("credential-upkeep", hourMs, (signal) =>
        sweepCredentials({ ...collections, store, clock }, signal),
      ),
    ],
    close: () => access.close(),
  };
}
