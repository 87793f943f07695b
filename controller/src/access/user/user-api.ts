import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { MeSchema, UserService } from "@holdfast/proto/holdfast/v1/user_pb.ts";
import { retryConflict } from "../../store/retry-conflict.ts";
import { newMetadata, nextMetadata } from "../../store/resource.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { auditOf, commitAndSee, organizationOf, principalOf, requireScopes } from "../caller.ts";
import { hashPurposes, type User } from "../credential/credential.ts";
import { userOfSetupToken } from "../credential/token-text.ts";
import { equalHash } from "../equal-hash.ts";
import { roleMessages } from "../organization/member-handlers.ts";
import { roleScopes } from "../scopes.ts";
import { createdUser } from "./set-up.ts";
import { requireFreeUsername } from "./username.ts";

/** So many organizations are named to one who asks who they are. */
const mostNamed = 200;

/** The RPCs of people. */
export function createUserApi(deps: AccessApiDeps): ServedService {
  const { users, memberships, organizations, sealer, clock } = deps;

  /** Whoever gets the token gets all that the person has: nothing that the caller lacks, and nothing elsewhere. */
  function requireResettable(userId: string, call: Call): void {
    const organizationId = organizationOf(call);
    const user = users.get(userId)?.object;
    const theirs = memberships.of(userId);
    const isTheirs = user?.metadata.organizationId === organizationId;
    const here = theirs.find(({ metadata }) => metadata.organizationId === organizationId);
    if (user === undefined || (!isTheirs && here === undefined))
      throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such person here.");
    if (here !== undefined) requireScopes(call, roleScopes[here.spec.role]);
    if (!isTheirs || user.spec.operator || theirs.some((each) => each !== here)) {
      const detail = `${userId} is not of this organization alone; a platform operator can do it.`;
      throw new HoldfastError("NOT_POSSIBLE", detail);
    }
  }

  const handlers: Handlers<typeof UserService> = {
    createUser: async ({ username }, call) => {
      const organizationId = organizationOf(call);
      requireFreeUsername(username, users);
      const now = clock.now();
      const { setup, token } = deps.setUps.begin(username);
      const user: User = {
        metadata: newMetadata(username, now, { organizationId }),
        spec: { passwordHash: null, operator: false, setup },
        status: {},
      };
      const unit = deps.begin();
      // The name of a user is its key; claimed as well, so that two at once get the proper answer.
      unit.claimName("user", "", username, username);
      unit.create("user", user);
      unit.audit(auditOf(call, "user.create", "user", username));
      const made = createdUser(user, token);
      unit.answer(call, made);
      await commitAndSee(call, unit, [users]);
      return made;
    },

    resetUser: async ({ userId }, call) => {
      requireResettable(userId, call);
      return deps.setUps.reset(userId, call);
    },

    setUpUser: ({ token, password }, call) =>
      retryConflict(call.signal, async () => {
        const id = userOfSetupToken(token);
        const before = id === undefined ? undefined : users.get(id);
        const setup = before?.object.spec.setup;
        const good = equalHash(setup?.tokenHash, sealer.keyedHash(hashPurposes.setup, token));
        if (before === undefined || setup === undefined || !good || setup.expiresAt <= clock.now())
          throw invalid({ field: "token", code: "invalid_token", detail: "is unknown, used or too old" });
        checkPassword(password, "password", before.object.metadata.id);
        const unit = deps.begin();
        unit.update("user", before, withPassword(before.object, await deps.passwordHash.make(password), clock.now()));
        const { organizationId } = before.object.metadata;
        unit.audit({ ...auditOf(call, "user.set-up", "user", before.object.metadata.id), organizationId });
        unit.answer(call, create(EmptySchema));
        await commitAndSee(call, unit, [users]);
        return create(EmptySchema);
      }),

    changePassword: ({ currentPassword, newPassword }, call) =>
      retryConflict(call.signal, async () => {
        const caller = principalOf(call);
        if (caller.kind !== "user")
          throw new HoldfastError("SCOPE_MISSING", "Only people have passwords; rotate a key instead.");
        checkPassword(newPassword, "new_password", caller.id);
        const before = await deps.passwords.verify(caller.id, currentPassword, call.source);
        if (before === undefined)
          throw invalid({ field: "current_password", code: "wrong", detail: "is not the current password" });
        const unit = deps.begin();
        unit.update(
          "user",
          before,
          withPassword(before.object, await deps.passwordHash.make(newPassword), clock.now()),
        );
        unit.audit(auditOf(call, "user.change-password", "user", caller.id));
        unit.answer(call, create(EmptySchema));
        await commitAndSee(call, unit, [users]);
        return create(EmptySchema);
      }),

    getMe: async (_, call) => {
      const { kind, id, name, organizationId, scopes, expiresAt } = principalOf(call);
      const mine =
        kind === "user"
          ? memberships.of(id).map(({ metadata, spec }) => ({ id: metadata.organizationId, role: spec.role }))
          : [{ id: organizationId ?? "", role: undefined }];
      const role = mine.find((each) => each.id === organizationId)?.role;
      return create(MeSchema, {
        kind,
        id,
        name,
        ...(organizationId !== undefined && { organizationId }),
        ...(role !== undefined && { role: roleMessages[role] }),
        scopes: [...scopes].sort(),
        ...(typeof expiresAt === "number" && { expiresAt: timestampFromMs(expiresAt) }),
        organizations: mine.slice(0, mostNamed).flatMap((each) => {
          const organization = organizations.get(each.id)?.object;
          if (organization === undefined) return [];
          const { metadata } = organization;
          return [{ id: each.id, name: metadata.name, ...(each.role && { role: roleMessages[each.role] }) }];
        }),
      });
    },
  };
  return serve(UserService, handlers);
}

function withPassword({ metadata, spec, status }: User, passwordHash: string, now: number): User {
  return { metadata: nextMetadata(metadata, now), spec: { passwordHash, operator: spec.operator }, status };
}

/** Length is in the proto; a password that is the name, or one letter over and over, is none. */
function checkPassword(password: string, field: string, userId: string): void {
  if (password.toLowerCase().includes(userId))
    throw invalid({ field, code: "too_weak", detail: "must not contain the user name" });
  if (new Set(password).size < 5)
    throw invalid({ field, code: "too_weak", detail: "must have at least 5 different characters" });
}
