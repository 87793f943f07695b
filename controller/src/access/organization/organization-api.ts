import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type Organization as OrganizationMessage,
  OrganizationSchema,
  OrganizationService,
} from "@holdfast/proto/holdfast/v1/organization_pb.ts";
import { pageByName } from "../../page/page-by-name.ts";
import { newMetadata, nextMetadata, type Stored } from "../../store/resource.ts";
import { retryConflict } from "../../store/retry-conflict.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { auditOf, commitAndSee, organizationOf, principalOf } from "../caller.ts";
import { createMemberHandlers } from "./member-handlers.ts";
import { type Membership, membershipId } from "./membership.ts";
import { type Organization, quotaOf } from "./organization.ts";

/** One person may own so many. */
const ownedMax = 20;

/** The RPCs of organizations and their members. */
export function createOrganizationApi(deps: AccessApiDeps): ServedService {
  const { organizations, memberships, membershipObjects, cursors, clock } = deps;

  /** The organization of the path, which must be the caller's own. */
  function require(id: string, call: Call): Stored<Organization> {
    const found = id === organizationOf(call) ? organizations.get(id) : undefined;
    if (found === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such organization of yours.");
    return found;
  }

  function message(organization: Organization): OrganizationMessage {
    const { id, name, createdAt, updatedAt } = organization.metadata;
    return create(OrganizationSchema, {
      id,
      name,
      quota: quotaOf(organization),
      usage: deps.quotas.usage(id),
      createdAt: timestampFromMs(createdAt),
      updatedAt: timestampFromMs(updatedAt),
    });
  }

  const handlers: Handlers<typeof OrganizationService> = {
    createOrganization: async ({ name }, call) => {
      const caller = principalOf(call);
      if (caller.kind !== "user")
        throw new HoldfastError("SCOPE_MISSING", "Only people make organizations; keys and tokens belong to one.");
      const owned = memberships.of(caller.id).filter(({ spec }) => spec.role === "owner").length;
      if (owned >= ownedMax) {
        const members = { quota: "organizations", used: owned, asked: 1, limit: ownedMax };
        throw new HoldfastError("QUOTA_EXCEEDED", `You own ${owned} of ${ownedMax} organizations.`, { members });
      }
      const now = clock.now();
      const id = deps.newId();
      const metadata = newMetadata(id, now, { name });
      const organization: Organization = { metadata, spec: { quota: {} }, status: {} };
      const membership: Membership = {
        metadata: { ...metadata, id: membershipId(id, caller.id), name: caller.id, organizationId: id },
        spec: { role: "owner" },
        status: {},
      };
      const unit = deps.begin();
      unit.claimName("organization", "", name, id);
      unit.create("organization", organization);
      unit.create("membership", membership);
      unit.audit({ ...auditOf(call, "organization.create", "organization", id), organizationId: id });
      const made = message(organization);
      if (made.usage !== undefined) made.usage.members = 1;
      unit.answer(call, made);
      await commitAndSee(call, unit, [organizations, membershipObjects]);
      return made;
    },

    listOrganizations: async (request, call) => {
      const caller = principalOf(call);
      const ids =
        caller.kind === "user"
          ? memberships.of(caller.id).map(({ metadata }) => metadata.organizationId)
          : [organizationOf(call)];
      const mine = ids.flatMap((id) => organizations.get(id)?.object ?? []);
      const page = cursors.open(call, `my organizations ${caller.kind}:${caller.id}`, null, request);
      const { items, next } = pageByName(mine, ({ metadata }) => metadata.id, page);
      return { organizations: items.map(message), ...page.next(next) };
    },

    getOrganization: async ({ orgId }, call) => message(require(orgId, call).object),

    updateOrganization: ({ orgId, name }, call) =>
      retryConflict(call.signal, async () => {
        const before = require(orgId, call);
        const { metadata } = before.object;
        if (name === undefined || name === metadata.name) return message(before.object);
        const after: Organization = { ...before.object, metadata: { ...nextMetadata(metadata, clock.now()), name } };
        const unit = deps.begin();
        unit.releaseName("organization", "", metadata.name);
        unit.claimName("organization", "", name, orgId);
        unit.update("organization", before, after);
        unit.audit(auditOf(call, "organization.update", "organization", orgId));
        await commitAndSee(call, unit, [organizations]);
        return message(after);
      }),

    // What belonged to it is good for nothing from this moment; organization-remains.ts removes it.
    deleteOrganization: ({ orgId }, call) =>
      retryConflict(call.signal, async () => {
        const before = require(orgId, call);
        await deps.services.reached(before.modRevision, 1_000);
        const { services } = deps.quotas.usage(orgId);
        if (services > 0) {
          const detail = `The organization has ${services} ${services === 1 ? "service" : "services"}.`;
          throw new HoldfastError("ORGANIZATION_NOT_EMPTY", detail, { members: { services } });
        }
        const unit = deps.begin();
        unit.remove("organization", before);
        unit.releaseName("organization", "", before.object.metadata.name);
        unit.audit(auditOf(call, "organization.delete", "organization", orgId));
        await commitAndSee(call, unit, [organizations]);
        return create(EmptySchema);
      }),

    ...createMemberHandlers(deps, require),
  };
  return serve(OrganizationService, handlers);
}
