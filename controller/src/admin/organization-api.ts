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
import { newKeyPair } from "../access/api-key-api.ts";
import { auditOf } from "../access/caller.ts";
import { checkScopes } from "../access/grant.ts";
import { type ApiKey, hashPurposes, ownerScopes } from "../access/credential.ts";
import type { Cursors } from "../access/cursor.ts";
import { type Organization, quotaOf } from "../access/organization.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Collection } from "../store/collection.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
import { adminPage } from "./admin-page.ts";
import type { AuditLog } from "./audit-log.ts";

export interface OrganizationApiDeps {
  readonly begin: () => UnitOfWork;
  readonly organizations: Collection<Organization>;
  readonly apiKeys: Collection<ApiKey>;
  readonly auditLog: AuditLog;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Operators make organizations and their first keys. */
export function createOrganizationApi(deps: OrganizationApiDeps): ServedService {
  const handlers: Handlers<typeof OrganizationService> = {
    createOrganization: async ({ name, quota }, call) => {
      const now = deps.clock.now();
      const id = deps.newId();
      const organization: Organization = {
        metadata: { id, name, organizationId: "", generation: 1, createdAt: now, updatedAt: now },
        spec: { quota: quota === undefined ? {} : { services: quota.services } },
        status: { services: 0 },
      };
      const unit = deps.begin();
      unit.claimName("organization", "", name, id);
      unit.create("organization", organization);
      unit.audit(auditOf(call, "organization.create", "organization", id));
      await deps.organizations.reached(await unit.commit(call.signal), 1_000);
      return organizationMessage(organization);
    },

    listOrganizations: async ({ page }, call) => {
      const { items, nextCursor } = adminPage(
        deps.organizations,
        () => true,
        page,
        call,
        deps.cursors,
        "organizations",
      );
      return { organizations: items.map(organizationMessage), nextCursor };
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
        metadata: {
          id,
          name: request.name,
          organizationId: request.organizationId,
          generation: 1,
          createdAt: now,
          updatedAt: now,
        },
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
      const { items, nextCursor } = adminPage(
        deps.apiKeys,
        accepts,
        page,
        call,
        deps.cursors,
        `api-keys ${organizationId}`,
      );
      return { apiKeys: items.map(apiKeyMessage), nextCursor };
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

function organizationMessage(organization: Organization): OrganizationMessage {
  const { id, name, createdAt } = organization.metadata;
  return create(OrganizationSchema, {
    id,
    name,
    quota: { services: quotaOf(organization).services },
    createdAt: timestampFromMs(createdAt),
  });
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
