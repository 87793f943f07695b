import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  type ApiKey as ApiKeyMessage,
  ApiKeySchema,
  type Organization as OrganizationMessage,
  OrganizationSchema,
  OrganizationService,
} from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { adminPage, type Cursors } from "#kernel/page/cursor.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { newMetadata, nextMetadata } from "#kernel/store/resource.ts";
import { mutate } from "../mutate.ts";
import { actorOf } from "../caller.ts";
import { newKeyPair } from "../credential/api-key-api.ts";
import { type ApiKey, apiKeyKind, hashPurposes } from "../credential/credential.ts";
import { type Organization, organizationKind } from "./organization.ts";
import { pickLimits, quotaFigures, updatedLimits } from "./quota-limits.ts";
import type { Quotas } from "./quotas.ts";
import type { AuditLog } from "../audit/audit-log.ts";
import type { ScopeCatalog } from "../scopes.ts";

export interface OrganizationAdminApiDeps {
  readonly begin: () => UnitOfWork;
  readonly organizations: Collection<Organization>;
  readonly apiKeys: Collection<ApiKey>;
  readonly quotas: Pick<Quotas, "all" | "usage" | "limits">;
  readonly scopeCatalog: ScopeCatalog;
  readonly auditLog: AuditLog;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The admin RPCs with which operators create organizations and their first keys, and set quotas. */
export function createOrganizationAdminApi(deps: OrganizationAdminApiDeps): ServedService {
  const message = (organization: Organization): OrganizationMessage =>
    create(OrganizationSchema, {
      id: organization.metadata.id,
      name: organization.metadata.name,
      quota: deps.quotas.limits(organization),
      usage: deps.quotas.usage(organization.metadata.id),
      quotas: quotaFigures(deps.quotas, organization),
      createdAt: timestampFromMs(organization.metadata.createdAt),
    });

  const kind = "organization";

  const handlers: Handlers<typeof OrganizationService> = {
    createOrganization: async ({ name, quota }, call) => {
      const now = deps.clock.now();
      const id = deps.newId();
      const organization: Organization = {
        metadata: newMetadata(id, now, { name }),
        spec: { quota: pickLimits(deps.quotas, { ...quota }) },
        status: {},
      };
      const mutation = { action: "organization.create", kind, visibleIn: [deps.organizations] };
      return mutate(deps, call, mutation, (unit) => {
        unit.claimName(organizationKind, "", name, id);
        unit.create(organizationKind, organization);
        return { id, result: message(organization) };
      });
    },

    updateQuota: (request, call) =>
      mutate(deps, call, { action: "organization.update-quota", kind, visibleIn: [deps.organizations] }, (unit) => {
        const before = deps.organizations.get(request.organizationId);
        if (before === undefined)
          throw new HoldfastError("OBJECT_NOT_FOUND", `There is no organization ${request.organizationId}.`);
        const { metadata, spec, status } = before.object;
        const quota = updatedLimits(deps.quotas, spec.quota, request);
        const after: Organization = {
          metadata: nextMetadata(metadata, deps.clock.now()),
          spec: { ...spec, quota },
          status,
        };
        unit.update(organizationKind, before, after);
        return { id: metadata.id, organizationId: metadata.id, result: message(after) };
      }),

    listOrganizations: async ({ page }, call) => {
      const { items, ...next } = adminPage(deps.organizations, () => true, page, call, deps.cursors, "organizations");
      return { organizations: items.map(message), ...next };
    },

    createApiKey: async (request, call) => {
      requireOrganization(deps, request.organizationId);
      const now = deps.clock.now();
      const expiresAt = request.expiresAt === undefined ? null : timestampMs(request.expiresAt);
      if (expiresAt !== null && expiresAt <= now)
        throw invalid({ field: "expires_at", code: "past", detail: "must be in the future" });
      const scopes = request.scopes.length === 0 ? [...deps.scopeCatalog.roleScopes.owner] : request.scopes;
      // Organizations cannot grant scopes of the host's operators.
      if (scopes.some((scope) => scope.startsWith("platform:"))) {
        throw invalid({
          field: "scopes",
          code: "not_grantable",
          detail: "must not be a platform scope: only operators have those",
        });
      }
      deps.scopeCatalog.check(scopes);
      const { id, secret } = newKeyPair();
      const key: ApiKey = {
        metadata: newMetadata(id, now, { name: request.name, organizationId: request.organizationId }),
        spec: {
          secretHash: deps.sealer.keyedHash(hashPurposes.apiKey, secret),
          scopes,
          expiresAt,
          createdBy: actorOf(call),
        },
        status: {},
      };
      return mutate(deps, call, { action: "api-key.create", kind: "api-key", visibleIn: [deps.apiKeys] }, (unit) => {
        unit.create(apiKeyKind, key);
        return { id, organizationId: request.organizationId, result: { apiKey: apiKeyMessage(key), secret } };
      });
    },

    listApiKeys: async ({ page, organizationId }, call) => {
      const accepts = ({ metadata }: ApiKey) => organizationId === "" || metadata.organizationId === organizationId;
      const { items, ...next } = adminPage(
        deps.apiKeys,
        accepts,
        page,
        call,
        deps.cursors,
        `api-keys ${organizationId}`,
      );
      return { apiKeys: items.map(apiKeyMessage), ...next };
    },

    revokeApiKey: ({ id }, call) =>
      mutate(deps, call, { action: "api-key.revoke", kind: "api-key", visibleIn: [deps.apiKeys] }, (unit) => {
        const key = deps.apiKeys.get(id);
        if (key === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `There is no key ${id}.`);
        unit.remove(apiKeyKind, key);
        return { id, organizationId: key.object.metadata.organizationId, result: {} };
      }),

    listAuditEntries: (request, call) => deps.auditLog.page(request, call),
  };
  return serve(OrganizationService, handlers);
}

function requireOrganization({ organizations }: OrganizationAdminApiDeps, id: string): void {
  if (organizations.get(id) === undefined)
    throw new HoldfastError("OBJECT_NOT_FOUND", `There is no organization ${id}.`);
}

function apiKeyMessage({ metadata, spec }: ApiKey): ApiKeyMessage {
  return create(ApiKeySchema, {
    id: metadata.id,
    organizationId: metadata.organizationId,
    name: metadata.name,
    scopes: [...spec.scopes],
    createdAt: timestampFromMs(metadata.createdAt),
    ...(spec.expiresAt === null ? {} : { expiresAt: timestampFromMs(spec.expiresAt) }),
  });
}
