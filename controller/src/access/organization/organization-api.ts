import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type Principal, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  type Organization as OrganizationMessage,
  OrganizationSchema,
  OrganizationService,
} from "@holdfast/proto/holdfast/v1/organization_pb.ts";
import { pageByName } from "#kernel/page/cursor.ts";
import { requireAmount } from "#kernel/store/quota.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { mutate } from "../mutate.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { organizationOf, principalOf } from "../caller.ts";
import { touchUser, type User } from "../credential/credential.ts";
import { createMemberHandlers } from "./member-handlers.ts";
import { quotaFigures } from "./quota-limits.ts";
import { type Membership, membershipId, membershipKind } from "./membership.ts";
import { type Organization, organizationKind, type OrganizationSpec, releaseClaim } from "./organization.ts";

/** Maximum number of organizations that a user owns. */
const ownedMax = 20;

/** The RPCs of organizations and their members. */
export function createOrganizationApi(deps: AccessApiDeps): ServedService {
  const { organizations, memberships, membershipObjects, users, cursors, clock } = deps;
  const see = [organizations, membershipObjects, users];
  const kind = "organization";

  /** The organization of the path, which must be the caller's own. */
  function require(id: string, call: Call): Stored<Organization> {
    const found = id === organizationOf(call) ? organizations.get(id) : undefined;
    if (found === undefined)
      throw new HoldfastError(
        "OBJECT_NOT_FOUND",
        "There is no such organization, or the credential does not belong to it.",
      );
    return found;
  }

  /** The user, if one more organization is permitted. Organizations that were created on other replicas count too. */
  async function requireOneMore({ kind, id }: Principal): Promise<Stored<User>> {
    const user = kind === "user" ? users.get(id) : undefined;
    if (user === undefined)
      throw new HoldfastError("SCOPE_MISSING", "Only users create organizations; keys and tokens belong to one.");
    await membershipObjects.untilRevision(user.modRevision, 1_000);
    const owned = memberships.of(id).filter(({ spec }) => spec.role === "owner").length;
    const figures = { used: owned, requested: 1, limit: ownedMax };
    requireAmount({ name: "organizations", label: "organizations" }, figures, "You own");
    return user;
  }

  function message(organization: Organization): OrganizationMessage {
    const { id, name, createdAt, updatedAt } = organization.metadata;
    return create(OrganizationSchema, {
      id,
      name,
      quota: deps.quotas.limits(organization),
      usage: deps.quotas.usage(id),
      quotas: quotaFigures(deps.quotas, organization),
      createdAt: timestampFromMs(createdAt),
      updatedAt: timestampFromMs(updatedAt),
    });
  }

  const handlers: Handlers<typeof OrganizationService> = {
    createOrganization: ({ name }, call) =>
      mutate(deps, call, { action: "organization.create", kind, visibleIn: see }, async (unit) => {
        const caller = principalOf(call);
        const user = await requireOneMore(caller);
        const now = clock.now();
        const id = deps.newId();
        const metadata = newMetadata(id, now, { name });
        // Operators create organizations for others.
        const isOperator = caller.scopes.has("platform:*");
        const spec: OrganizationSpec = { quota: {}, ...(!isOperator && { creator: caller.id, ownName: true }) };
        const organization: Organization = { metadata, spec, status: {} };
        const membership: Membership = {
          metadata: { ...metadata, id: membershipId(id, caller.id), name: caller.id, organizationId: id },
          spec: { role: "owner" },
          status: {},
        };
        if (isOperator) unit.claimName(organizationKind, "", name, id);
        unit.create(organizationKind, organization);
        unit.create(membershipKind, membership);
        touchUser(unit, user, now);
        const response = message(organization);
        if (response.usage !== undefined) response.usage.members = 1;
        return { id, organizationId: id, response };
      }),

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
      mutate(deps, call, { action: "organization.update", kind, visibleIn: [organizations] }, async (unit) => {
        const before = require(orgId, call);
        const { metadata } = before.object;
        if (name === undefined || name === metadata.name) return { unchanged: message(before.object) };
        const after: Organization = {
          ...before.object,
          metadata: { ...nextMetadata(metadata, clock.now()), name },
          spec: { ...before.object.spec, ownName: true },
        };
        await releaseClaim(unit, deps.store, metadata, call.signal);
        unit.update(organizationKind, before, after);
        return { id: orgId, result: message(after) };
      }),

    // The organization's objects are void from this moment; organization-cascade.ts deletes them.
    deleteOrganization: ({ orgId }, call) =>
      mutate(deps, call, { action: "organization.delete", kind, visibleIn: [organizations] }, async (unit) => {
        const before = require(orgId, call);
        await Promise.all(deps.resources.map(({ objects }) => objects.untilRevision(before.modRevision, 1_000)));
        const { services = 0 } = deps.quotas.usage(orgId);
        if (services > 0) {
          const detail = `The organization has ${services} ${services === 1 ? "service" : "services"}.`;
          throw new HoldfastError("ORGANIZATION_NOT_EMPTY", detail, { members: { services } });
        }
        unit.remove(organizationKind, before);
        await releaseClaim(unit, deps.store, before.object.metadata, call.signal);
        return { id: orgId, result: create(EmptySchema) };
      }),

    ...createMemberHandlers(deps, require),
  };
  return serve(OrganizationService, handlers);
}
