import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Call } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { type CreatedUser, CreatedUserSchema } from "@holdfast/proto/holdfast/v1/user_pb.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Changes, UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { mutate } from "../mutate.ts";
import {
  hashPurposes,
  nextTokenGeneration,
  type User,
  userKind,
  type UserSpec,
  newSetupToken,
} from "../credential/credential.ts";

/** One-time tokens with which users set their passwords. */
export interface SetupTokens {
  /** A new token for the user, and its record for the store. */
  begin(userId: string): { readonly token: string; readonly setup: NonNullable<UserSpec["setup"]> };
  /**
   * Deletes the user's password, voids all tokens that the user created, and returns a new one-time token. `permit`
   * throws if the caller may not do it; it runs in each attempt of the transaction.
   */
  reset(userId: string, call: Call, permit?: (unit: Changes) => void): Promise<CreatedUser>;
}

const setupTokenLifetimeMs = 72 * 3_600_000;

export function createSetupTokens(deps: {
  readonly users: Collection<User>;
  readonly begin: () => UnitOfWork;
  readonly sealer: Sealer;
  readonly clock: Clock;
}): SetupTokens {
  const { users, sealer, clock } = deps;

  function begin(userId: string) {
    const token = newSetupToken(userId);
    const tokenHash = sealer.keyedHash(hashPurposes.setup, token);
    return { token, setup: { tokenHash, expiresAt: clock.now() + setupTokenLifetimeMs } };
  }

  return {
    begin,
    reset: (userId, call, permit) =>
      mutate(deps, call, { action: "user.reset", kind: "user", visibleIn: [users] }, async (unit) => {
        permit?.(unit);
        const before = users.get(userId);
        if (before === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such user.");
        const { metadata, spec, status } = before.object;
        const { token, setup } = begin(userId);
        const after: User = {
          metadata: nextMetadata(metadata, clock.now()),
          spec: { passwordHash: null, operator: spec.operator, ...nextTokenGeneration(spec), setup },
          status,
        };
        unit.update(userKind, before, after);
        const response = createdUser(after, token);
        return { id: userId, response };
      }),
  };
}

/** The response with the token, which the caller passes to the user. */
export function createdUser({ metadata, spec }: User, token: string): CreatedUser {
  return create(CreatedUserSchema, {
    id: metadata.id,
    setupToken: token,
    ...(spec.setup && { setupExpiresAt: timestampFromMs(spec.setup.expiresAt) }),
    createdAt: timestampFromMs(metadata.createdAt),
  });
}

/** Throws INVALID_REQUEST for a name that looks like a key id, and NAME_TAKEN for a taken one. */
export function requireFreeUsername(username: string, users: Pick<Collection<User>, "get">): void {
  if (username.startsWith("hfk_"))
    throw invalid({ field: "username", code: "reserved", detail: "must not begin with hfk_, as keys do" });
  if (users.get(username) !== undefined) throw new HoldfastError("NAME_TAKEN", `${username} is in use.`);
}
