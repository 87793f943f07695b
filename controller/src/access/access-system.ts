import type { SchemaRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import { CreateApiKeyRequestSchema } from "@holdfast/proto/holdfast/v1/api_key_pb.ts";
import { CreateTokenRequestSchema, TokenResourceSchema } from "@holdfast/proto/holdfast/v1/token_pb.ts";
import { text } from "@holdfast/common/config.ts";
import type { Use } from "#kernel/assembly.ts";
import { installationPart } from "#kernel/installation.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { AccessObjects } from "./access-api-deps.ts";
import { type TokenResourceKind, tokenResources } from "./credential/token-resources.ts";
import { createAuditLog } from "./audit/audit-log.ts";
import { authenticatorPart } from "./authenticator.ts";
import { bootstrapAccess } from "./bootstrap.ts";
import { createAccess } from "./create-access.ts";
import { apiKeyKind, credentialUseKind, tokenKind, userKind } from "./credential/credential.ts";
import { sweepCredentials } from "./credential/credential-sweep.ts";
import { createOperatorApi } from "./operator/operator-api.ts";
import { membershipKind } from "./organization/membership.ts";
import { createOrganizationAdminApi } from "./organization/organization-admin-api.ts";
import { createOrganizationCascade } from "./organization/organization-cascade.ts";
import { organizationKind } from "./organization/organization.ts";
import { quotasPart } from "./organization/quotas.ts";
import { type ScopeCatalog, scopeCatalogPart } from "./scopes.ts";
import { sessionCodeKind, sessionKind } from "./session/session.ts";
import { signInSourcesKind } from "./user/recent-sources.ts";

const hourMs = 3_600_000;

const accessSettings = {
  bootstrapFile: text(
    "HOLDFAST_BOOTSTRAP_FILE",
    "File with the first credentials; empty if the installation has them already",
    "",
  ),
} as const;

/**
 * Authentication, authorization and quotas. Callers are users (password or session), API keys, tokens and operators;
 * each call gets a principal with scopes (authenticator.ts). Organizations have members with roles, and quotas that
 * every creation claims (organization/quotas.ts). Refused changes are audited (audit/audit-log.ts).
 */
export const accessSystem = declareSystem({
  name: "access",
  settings: accessSettings,
  scopes: {
    org: { verbs: ["read", "write"], completeFrom: "admin" },
    keys: { verbs: ["read", "write"], completeFrom: "admin" },
    audit: { verbs: ["read"] },
    organization: { verbs: ["delete"], completeFrom: "owner" },
  },
  audited: {
    "holdfast.v1.OrganizationService": "organization",
    "holdfast.v1.UserService": "user",
    "holdfast.v1.ApiKeyService": "api-key",
    "holdfast.v1.TokenService": "token",
    "holdfast.v1.SessionService": "session",
    "holdfast.admin.v1.OrganizationService": "organization",
    "holdfast.admin.v1.OperatorService": "user",
  },
  provides: [authenticatorPart, quotasPart],
  async prepare(parts, use, { bootstrapFile }, signal) {
    const { roleScopes } = use(scopeCatalogPart);
    if (bootstrapFile !== "") await bootstrapAccess(bootstrapFile, parts, [...roleScopes.owner], signal);
  },
  open: openAccessSystem,
});

function openAccessSystem(kernel: Kernel, use: Use): System {
  const [scopeCatalog, resources] = [use(scopeCatalogPart), use(tokenResources)];
  const { collections: kinds, store, history, cursors, clock } = kernel;
  const collections: AccessObjects = {
    organizations: kinds.open(organizationKind),
    memberships: kinds.open(membershipKind),
    users: kinds.open(userKind),
    apiKeys: kinds.open(apiKeyKind),
    tokens: kinds.open(tokenKind),
    sessions: kinds.open(sessionKind),
    sessionCodes: kinds.open(sessionCodeKind),
    credentialUses: kinds.open(credentialUseKind),
    signInSources: kinds.open(signInSourcesKind),
  };
  const access = createAccess({
    ...kernel,
    collections,
    kinds,
    sources: use(installationPart).sources,
    scopeCatalog,
    resources,
  });
  const auditLog = createAuditLog({ history, cursors });
  const { authenticator, quotas, setupTokens } = access;
  return {
    name: "access",
    provides: [authenticatorPart.of(authenticator), quotasPart.of(quotas)],
    rpcs: [
      ...access.services,
      createOrganizationAdminApi({ ...kernel, ...collections, quotas, scopeCatalog, auditLog }),
      createOperatorApi({ ...kernel, ...collections, setupTokens }),
    ],
    schemaRules: accessForms(scopeCatalog, resources),
    metrics: access.metrics,
    work: [
      createOrganizationCascade({ kinds, store }),
      createPeriodic("credential-sweep", hourMs, (signal) =>
        sweepCredentials({ ...collections, store, clock }, signal),
      ),
    ],
    close: () => access.close(),
  };
}

/** Input limits of the access RPCs: requests accept the scopes and kinds that the systems of this version declare. */
function accessForms({ scopes }: ScopeCatalog, resources: readonly TokenResourceKind[]): readonly SchemaRule[] {
  const scope = { enum: scopes };
  return [
    [CreateApiKeyRequestSchema.field.scopes, scope],
    [CreateTokenRequestSchema.field.scopes, scope],
    [TokenResourceSchema.field.kind, { enum: resources.map(({ kind }) => kind) }],
  ];
}
