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
import { auditOf } from "../access/caller.ts";
import { newKeyPair } from "../access/credential/api-key-api.ts";
import { type ApiKey, hashPurposes, ownerScopes } from "../access/credential/credential.ts";
import { checkScopes } from "../access/grant.ts";
import {
  type Organization,
  type Quota,
  type QuotaName,
  quotaNames,
  quotaOf,
} from "../access/organization/organization.ts";
import { quotaFields, type Quotas } from "../access/organization/quotas.ts";
import { adminPage } from "../page/admin-page.ts";
import type { Cursors } from "../page/cursor.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Collection } from "../store/collection.ts";
import { retryConflict } from "../store/retry-conflict.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
import { newMetadata, nextMetadata } from "../store/resource.ts";
import type { AuditLog } from "./audit-log.ts";

export interface OrganizationApiDeps {
  readonly begin: () => UnitOfWork;
  readonly organizations: Collection<Organization>;
  readonly apiKeys: Collection<ApiKey>;
  readonly quotas: Pick<Quotas, "usage">;
  readonly auditLog: AuditLog;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Operators make organizations and their first keys, and say how much each may have. */
export function createOrganizationApi(deps: OrganizationApiDeps): ServedService {
  const message = (organization: Organization): OrganizationMessage =>
    create(OrganizationSchema, {
      id: organization.metadata.id,
      name: organization.metadata.name,
      quota: quotaOf(organization),
      usage: deps.quotas.usage(organization.metadata.id),
      createdAt: timestampFromMs(organization.metadata.createdAt),
    });

  const handlers: Handlers<typeof OrganizationService> = {
    createOrganization: async ({ name, quota }, call) => {
      const now = deps.clock.now();
      const id = deps.newId();
      const organization: Organization = {
        metadata: newMetadata(id, now, { name }),
        spec: { quota: givenOf(quota ?? {}) },
        status: {},
      };
      const unit = deps.begin();
      unit.claimName("organization", "", name, id);
      unit.create("organization", organization);
      unit.audit(auditOf(call, "organization.create", "organization", id));
      await deps.organizations.reached(await unit.commit(call.signal), 1_000);
      return message(organization);
    },

    updateQuota: (request, call) =>
      retryConflict(call.signal, async () => {
        const before = deps.organizations.get(request.organizationId);
        if (before === undefined)
          throw new HoldfastError("OBJECT_NOT_FOUND", `There is no organization ${request.organizationId}.`);
        const { metadata, spec, status } = before.object;
        const quota = withLimits(spec.quota, request.updateMask?.paths ?? [], request);
        const after: Organization = {
          metadata: nextMetadata(metadata, deps.clock.now()),
          spec: { ...spec, quota },
          status,
        };
        const unit = deps.begin();
        unit.update("organization", before, after);
        const audit = auditOf(call, "organization.update-quota", "organization", metadata.id);
        unit.audit({ ...audit, organizationId: metadata.id });
        await deps.organizations.reached(await unit.commit(call.signal), 1_000);
        return message(after);
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
      const scopes = request.scopes.length === 0 ? ownerScopes : request.scopes;
      // Nobody's organization gives out what only the host's operators have.
      if (scopes.some((scope) => scope.startsWith("platform:"))) {
        throw invalid({ field: "scopes", code: "not_grantable", detail: "platform scopes belong to operators alone" });
      }
      checkScopes(scopes);
      const { id, secret } = newKeyPair();
      const key: ApiKey = {
        metadata: newMetadata(id, now, { name: request.name, organizationId: request.organizationId }),
        spec: { secretHash: deps.sealer.keyedHash(hashPurposes.apiKey, secret), scopes, expiresAt },
        status: {},
      };
      const unit = deps.begin();
      unit.create("api-key", key);
      unit.audit({ ...auditOf(call, "api-key.create", "api-key", id), organizationId: request.organizationId });
      await deps.apiKeys.reached(await unit.commit(call.signal), 1_000);
      return { apiKey: apiKeyMessage(key), secret };
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

    revokeApiKey: async ({ id }, call) => {
      const key = deps.apiKeys.get(id);
      if (key === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", `There is no key ${id}.`);
      const unit = deps.begin();
      unit.remove("api-key", key);
      const { organizationId } = key.object.metadata;
      unit.audit({ ...auditOf(call, "api-key.revoke", "api-key", id), organizationId });
      await deps.apiKeys.reached(await unit.commit(call.signal), 1_000);
      return {};
    },

    listAuditEntries: (request, call) => deps.auditLog.page(request, call),
  };
  return serve(OrganizationService, handlers);
}

function requireOrganization({ organizations }: OrganizationApiDeps, id: string): void {
  if (organizations.get(id) === undefined)
    throw new HoldfastError("OBJECT_NOT_FOUND", `There is no organization ${id}.`);
}

type Limits = Readonly<Partial<Record<QuotaName, number | undefined>>>;

/** Those that were given. */
function givenOf(limits: Limits): Partial<Quota> {
  return Object.fromEntries(
    quotaNames.flatMap((name) => (limits[name] === undefined ? [] : [[name, limits[name]] as const])),
  );
}

/** The limits that the mask names as the request has them, and the others as they were. */
function withLimits(before: Partial<Quota>, paths: readonly string[], request: Limits): Partial<Quota> {
  const named = paths.map((path) => {
    const name = quotaNames.find((candidate) => quotaFields[candidate] === path);
    if (name === undefined)
      throw invalid({ field: "update_mask", code: "unknown_field", detail: `names ${path}, which is no quota` });
    return name;
  });
  const kept = Object.fromEntries(Object.entries(before).filter(([name]) => !named.includes(name as QuotaName)));
  return { ...kept, ...givenOf(Object.fromEntries(named.map((name) => [name, request[name]]))) };
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
