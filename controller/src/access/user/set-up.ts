import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Call } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type CreatedUser, CreatedUserSchema } from "@holdfast/proto/holdfast/v1/user_pb.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { auditOf, commitAndSee } from "../caller.ts";
import { hashPurposes, nextTokenGeneration, type User, userKind, type UserSpec } from "../credential/credential.ts";
import { newSetupToken } from "../credential/token-text.ts";

/** One-time tokens by which people set their passwords. */
export interface SetUps {
  /** A new token for the person, and its record for the store. */
  begin(userId: string): { readonly token: string; readonly setup: NonNullable<UserSpec["setup"]> };
  /** Ends the person's password and all tokens that they made, and answers a new one-time token. Whether the caller may is theirs to check. */
  reset(userId: string, call: Call): Promise<CreatedUser>;
}

const setupMs = 72 * 3_600_000;

export function createSetUps(deps: {
  readonly users: Collection<User>;
  readonly begin: () => UnitOfWork;
  readonly sealer: Sealer;
  readonly clock: Clock;
}): SetUps {
  const { users, sealer, clock } = deps;

  function begin(userId: string) {
    const token = newSetupToken(userId);
    const tokenHash = sealer.keyedHash(hashPurposes.setup, token);
    return { token, setup: { tokenHash, expiresAt: clock.now() + setupMs } };
  }

  return {
    begin,
    reset: (userId, call) =>
      retryConflict(call.signal, async () => {
        const before = users.get(userId);
        if (before === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such person.");
        const { metadata, spec, status } = before.object;
        const { token, setup } = begin(userId);
        const after: User = {
          metadata: nextMetadata(metadata, clock.now()),
          spec: { passwordHash: null, operator: spec.operator, ...nextTokenGeneration(spec), setup },
          status,
        };
        const unit = deps.begin();
        unit.update(userKind, before, after);
        unit.audit(auditOf(call, "user.reset", "user", userId));
        const answer = createdUser(after, token);
        unit.answer(call, answer);
        await commitAndSee(call, unit, [users]);
        return answer;
      }),
  };
}

/** What the caller hands to the person. */
export function createdUser({ metadata, spec }: User, token: string): CreatedUser {
  return create(CreatedUserSchema, {
    id: metadata.id,
    setupToken: token,
    ...(spec.setup && { setupExpiresAt: timestampFromMs(spec.setup.expiresAt) }),
    createdAt: timestampFromMs(metadata.createdAt),
  });
}
