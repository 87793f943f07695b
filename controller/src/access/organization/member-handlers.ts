import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Call, Handlers } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  type Member as MemberMessage,
  MemberSchema,
  type OrganizationService,
  Role as RoleMessage,
} from "@holdfast/proto/holdfast/v1/organization_pb.ts";
import { ofOrganization } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { mutate } from "../mutate.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { requireScope, requireScopes } from "../caller.ts";
import { touchUser, type User } from "../credential/credential.ts";
import { type Role, roles } from "../scopes.ts";
import { type Membership, membershipId, membershipKind } from "./membership.ts";
import { type Organization, touch } from "./organization.ts";

type MemberMethods = "listMembers" | "addMember" | "updateMember" | "removeMember";

/** The RPCs of members. Each change writes the organization, so that the last two owners cannot leave concurrently. */
export function createMemberHandlers(
  deps: AccessApiDeps,
  require: (organizationId: string, call: Call) => Stored<Organization>,
): Pick<Handlers<typeof OrganizationService>, MemberMethods> {
  const { organizations, memberships, membershipObjects, users, cursors, clock } = deps;
  const { roleScopes } = deps.scopeCatalog;
  const see = [organizations, membershipObjects, users];
  const kind = "membership";

  function requireMember(organizationId: string, userId: string): Stored<Membership> {
    const member = memberships.get(organizationId, userId);
    if (member === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "The organization has no such member.");
    return member;
  }

  /** The members at the organization's revision or later. */
  async function membersAt({ object, modRevision }: Stored<Organization>): Promise<Membership[]> {
    await membershipObjects.untilRevision(modRevision, 1_000);
    return ofOrganization(membershipObjects, object.metadata.id);
  }

  async function requireOtherOwner(organization: Stored<Organization>, userId: string): Promise<void> {
    const members = await membersAt(organization);
    if (members.some(({ metadata, spec }) => spec.role === "owner" && metadata.name !== userId)) return;
    throw new HoldfastError("LAST_OWNER", `${userId} is the last owner of the organization.`);
  }

  /**
   * A user that is visible to the caller: created by the organization, or a member of an organization of the caller.
   */
  function requireVisibleUser(organizationId: string, userId: string, call: Call): Stored<User> {
    const user = users.get(userId);
    const organizationIds = memberships.of(userId).map(({ metadata }) => metadata.organizationId);
    const callerOrganizationIds =
      call.principal?.kind === "user"
        ? memberships.of(call.principal.id).map(({ metadata }) => metadata.organizationId)
        : [organizationId];
    const isVisible =
      user?.object.metadata.organizationId === organizationId ||
      organizationIds.some((id) => callerOrganizationIds.includes(id));
    if (user === undefined || !isVisible)
      throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such user in the organization.");
    return user;
  }

  return {
    listMembers: async ({ orgId, ...request }, call) => {
      require(orgId, call);
      const page = { ...cursors.open(call, "members", orgId, request), organizationId: orgId };
      const { items, next } = membershipObjects.page(() => true, page);
      return { members: items.map(({ object }) => memberMessage(object)), ...page.next(next) };
    },

    addMember: ({ orgId, userId, role: requestedRole }, call) =>
      mutate(deps, call, { action: "member.add", kind, visibleIn: see }, async (unit) => {
        const organization = require(orgId, call);
        const role = roleOf(requestedRole);
        requireScopes(call, roleScopes[role]);
        const user = requireVisibleUser(orgId, userId, call);
        const members = await membersAt(organization);
        if (members.some(({ metadata }) => metadata.name === userId))
          throw new HoldfastError("NAME_TAKEN", `${userId} is a member already.`);
        const now = clock.now();
        const id = membershipId(orgId, userId);
        const membership: Membership = {
          metadata: newMetadata(id, now, { name: userId, organizationId: orgId }),
          spec: { role },
          status: {},
        };
        unit.create(membershipKind, membership);
        touchUser(unit, user, now);
        await deps.quotas.claim(unit, orgId, { members: 1 });
        const response = memberMessage(membership);
        return { id: userId, response };
      }),

    updateMember: ({ orgId, userId, role: requestedRole }, call) =>
      mutate(deps, call, { action: `member.set-${roleOf(requestedRole)}`, kind, visibleIn: see }, async (unit) => {
        const organization = require(orgId, call);
        const before = requireMember(orgId, userId);
        const role = roleOf(requestedRole);
        // To revoke a role requires its scopes, like to grant it.
        requireScopes(call, [...roleScopes[before.object.spec.role], ...roleScopes[role]]);
        if (role === before.object.spec.role) return { unchanged: memberMessage(before.object) };
        if (before.object.spec.role === "owner") await requireOtherOwner(organization, userId);
        const now = clock.now();
        const { metadata } = before.object;
        const after: Membership = {
          ...before.object,
          metadata: nextMetadata(metadata, now),
          spec: { role },
        };
        unit.update(membershipKind, before, after);
        touch(unit, organization, now);
        return { id: userId, result: memberMessage(after) };
      }),

    removeMember: ({ orgId, userId }, call) =>
      mutate(deps, call, { action: "member.remove", kind, visibleIn: see }, async (unit) => {
        const organization = require(orgId, call);
        const isSelf = call.principal?.kind === "user" && call.principal.id === userId;
        if (!isSelf) requireScope(call, "org:write");
        const before = requireMember(orgId, userId);
        if (!isSelf) requireScopes(call, roleScopes[before.object.spec.role]);
        if (before.object.spec.role === "owner") await requireOtherOwner(organization, userId);
        unit.remove(membershipKind, before);
        touch(unit, organization, clock.now());
        return { id: userId, result: create(EmptySchema) };
      }),
  };
}

export const roleMessages: Readonly<Record<Role, RoleMessage>> = {
  viewer: RoleMessage.VIEWER,
  developer: RoleMessage.DEVELOPER,
  admin: RoleMessage.ADMIN,
  owner: RoleMessage.OWNER,
};

function roleOf(role: RoleMessage | undefined): Role {
  const name = roles.find((candidate) => roleMessages[candidate] === role);
  if (name === undefined) throw invalid({ field: "role", code: "required", detail: "must be given" });
  return name;
}

function memberMessage({ metadata, spec }: Membership): MemberMessage {
  return create(MemberSchema, {
    userId: metadata.name,
    role: roleMessages[spec.role],
    createdAt: timestampFromMs(metadata.createdAt),
  });
}
