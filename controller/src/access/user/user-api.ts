import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { MeSchema, UserService } from "@holdfast/proto/holdfast/v1/user_pb.ts";
import { keyOf, newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { mutate } from "../mutate.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { organizationOf, principalOf, requireScopes } from "../caller.ts";
import { hashPurposes, nextTokenGeneration, type User, userKind, userOfSetupToken } from "../credential/credential.ts";
import { equalHash } from "../equal-hash.ts";
import { signInSourcesKind } from "./recent-sources.ts";
import type { PasswordSource } from "./password-hash.ts";
import { roleMessages } from "../organization/member-handlers.ts";
import { organizationsOf } from "../organization/organizations-of.ts";
import { type Membership, membershipKind } from "../organization/membership.ts";
import { createdUser, requireFreeUsername } from "./setup-tokens.ts";

/** The RPCs of users: creation, setup, passwords, and GetMe. */
export function createUserApi(deps: AccessApiDeps): ServedService {
  const { users, memberships, organizations, sealer, clock } = deps;

  const notFound = () => new HoldfastError("OBJECT_NOT_FOUND", "There is no such user in the organization.");

  /** The user, if the caller's organization created the user; others may not delete the user. */
  function requireCreatedUser(userId: string, call: Call): Stored<User> {
    const user = users.get(userId);
    if (user === undefined || user.object.metadata.organizationId !== organizationOf(call)) throw notFound();
    if (user.object.spec.operator) throw new HoldfastError("NOT_POSSIBLE", `${userId} is a platform operator.`);
    return user;
  }

  /** The user's memberships at the user's revision or later, without memberships in deleted organizations. */
  async function membershipsAt({ object, modRevision }: Stored<User>): Promise<Membership[]> {
    await Promise.all([deps.membershipObjects, organizations].map((each) => each.untilRevision(modRevision, 1_000)));
    const ofUser = memberships.of(object.metadata.id);
    return ofUser.filter(({ metadata }) => organizations.get(metadata.organizationId) !== undefined);
  }

  /**
   * The reset token grants the caller everything that the user may do, so it must be within the caller's own scopes,
   * and in this organization only. The commit requires the role that was checked; a new membership changes the user.
   */
  function requireResettable(unit: Changes, userId: string, call: Call): void {
    const organizationId = organizationOf(call);
    const user = users.get(userId)?.object;
    const ofUser = memberships.of(userId);
    const isCreatedHere = user?.metadata.organizationId === organizationId;
    const membership = memberships.get(organizationId, userId);
    if (user === undefined || (!isCreatedHere && membership === undefined)) throw notFound();
    if (membership !== undefined) {
      requireScopes(call, deps.scopeCatalog.roleScopes[membership.object.spec.role]);
      unit.onlyWhile({
        key: keyOf(membershipKind, membership.object.metadata.id),
        modRevision: membership.modRevision,
      });
    }
    if (
      !isCreatedHere ||
      user.spec.operator ||
      ofUser.some(({ metadata }) => metadata.organizationId !== organizationId)
    ) {
      const detail = `${userId} is also a member of other organizations, so only a platform operator can reset the password.`;
      throw new HoldfastError("NOT_POSSIBLE", detail);
    }
  }

  const handlers: Handlers<typeof UserService> = {
    createUser: ({ username }, call) =>
      mutate(deps, call, { action: "user.create", kind: "user", visibleIn: [users, organizations] }, async (unit) => {
        const organizationId = organizationOf(call);
        requireFreeUsername(username, users);
        const now = clock.now();
        const { setup, token } = deps.setupTokens.begin(username);
        const user: User = {
          metadata: newMetadata(username, now, { organizationId }),
          spec: { passwordHash: null, operator: false, setup },
          status: {},
        };
        // The id of a user is its name; it is claimed as well, so that of two concurrent creations one gets NAME_TAKEN.
        unit.claimName(userKind, "", username, username);
        unit.create(userKind, user);
        await deps.quotas.claim(unit, organizationId, { users: 1 });
        const response = createdUser(user, token);
        return { id: username, response };
      }),

    resetUser: ({ userId }, call) =>
      deps.setupTokens.reset(userId, call, (unit) => requireResettable(unit, userId, call)),

    setUpUser: ({ token, password }, call) =>
      mutate(deps, call, { action: "user.set-up", kind: "user", visibleIn: [users] }, async (unit) => {
        const id = userOfSetupToken(token);
        const before = id === undefined ? undefined : users.get(id);
        const setup = before?.object.spec.setup;
        const matches = equalHash(setup?.tokenHash, sealer.keyedHash(hashPurposes.setup, token));
        if (before === undefined || setup === undefined || !matches || setup.expiresAt <= clock.now())
          throw invalid({ field: "token", code: "invalid_token", detail: "is unknown, used or too old" });
        checkPassword(password, "password", before.object.metadata.id);
        unit.update(
          userKind,
          before,
          withPassword(before.object, await deps.passwordHash.create(password, passwordSourceOf(call)), clock.now()),
        );
        const { organizationId } = before.object.metadata;
        return { id: before.object.metadata.id, organizationId, response: create(EmptySchema) };
      }),

    deleteUser: ({ userId }, call) =>
      mutate(deps, call, { action: "user.delete", kind: "user", visibleIn: [users] }, async (unit) => {
        const before = requireCreatedUser(userId, call);
        if ((await membershipsAt(before)).length > 0)
          throw new HoldfastError("NOT_POSSIBLE", `${userId} is a member of an organization; remove the member first.`);
        unit.remove(userKind, before);
        unit.releaseName(userKind, "", userId);
        const sources = deps.signInSources.get(userId);
        if (sources !== undefined) unit.remove(signInSourcesKind, sources);
        else unit.onlyWhile({ key: keyOf(signInSourcesKind, userId), modRevision: 0n });
        return { id: userId, result: create(EmptySchema) };
      }),

    changePassword: ({ currentPassword, newPassword }, call) =>
      mutate(deps, call, { action: "user.change-password", kind: "user", visibleIn: [users] }, async (unit) => {
        const caller = principalOf(call);
        if (caller.kind !== "user")
          throw new HoldfastError("SCOPE_MISSING", "Only users have passwords; rotate a key instead.");
        checkPassword(newPassword, "new_password", caller.id);
        const before = await deps.passwords.verify(caller.id, currentPassword, call.source);
        if (before === undefined)
          throw invalid({ field: "current_password", code: "wrong", detail: "is not the current password" });
        unit.update(
          userKind,
          before,
          withPassword(before.object, await deps.passwordHash.create(newPassword, passwordSourceOf(call)), clock.now()),
        );
        return { id: caller.id, response: create(EmptySchema) };
      }),

    getMe: async (_, call) => {
      const { kind, id, name, organizationId, scopes, expiresAt } = principalOf(call);
      const own = organizationId === undefined ? undefined : organizations.get(organizationId)?.object.metadata;
      const role =
        organizationId && kind === "user" ? memberships.get(organizationId, id)?.object.spec.role : undefined;
      return create(MeSchema, {
        kind,
        id,
        name,
        ...(organizationId !== undefined && { organizationId }),
        ...(role !== undefined && { role: roleMessages[role] }),
        scopes: [...scopes].sort(),
        ...(typeof expiresAt === "number" && { expiresAt: timestampFromMs(expiresAt) }),
        organizations: kind === "user" ? organizationsOf(deps, id) : own ? [{ id: own.id, name: own.name }] : [],
      });
    },
  };
  return serve(UserService, handlers);
}

function withPassword({ metadata, spec, status }: User, passwordHash: string, now: number): User {
  const { operator } = spec;
  return {
    metadata: nextMetadata(metadata, now),
    spec: { passwordHash, operator, ...nextTokenGeneration(spec) },
    status,
  };
}

/** The caller has a setup token or the old password, so its source counts as recent. */
function passwordSourceOf({ source }: Call): PasswordSource {
  return { source, isRecent: true };
}

/** The proto checks the length; a password must not contain the user name or repeat few characters. */
function checkPassword(password: string, field: string, userId: string): void {
  if (password.toLowerCase().includes(userId))
    throw invalid({ field, code: "too_weak", detail: "must not contain the user name" });
  if (new Set(password).size < 5)
    throw invalid({ field, code: "too_weak", detail: "must have at least 5 different characters" });
}
