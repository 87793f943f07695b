import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { OperatorService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { adminPage, type Cursors } from "#kernel/page/cursor.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { mutate } from "../mutate.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hashPurposes, nextTokenGeneration, type User, userKind } from "../credential/credential.ts";
import type { Membership } from "../organization/membership.ts";
import { type SetupTokens, requireFreeUsername } from "../user/setup-tokens.ts";

export interface OperatorApiDeps {
  readonly begin: () => UnitOfWork;
  readonly users: Collection<User>;
  readonly memberships: Collection<Membership>;
  readonly setupTokens: SetupTokens;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
}

/** The admin RPCs with which operators create, rotate and revoke operators. */
export function createOperatorApi(deps: OperatorApiDeps): ServedService {
  const { users, memberships, sealer, cursors, clock } = deps;

  function require(username: string): Stored<User> {
    const found = users.get(username);
    if (found?.object.spec.operator === true) return found;
    throw new HoldfastError("OBJECT_NOT_FOUND", `There is no operator ${username}.`);
  }

  /** A generated password cannot be guessed, so its hash is fast, like that of an API key. */
  function newPassword(): { password: string; passwordHash: string } {
    const password = randomBytes(24).toString("base64url");
    return { password, passwordHash: sealer.keyedHash(hashPurposes.password, password) };
  }

  const changed = ({ metadata, status }: User, spec: User["spec"]): User => ({
    metadata: nextMetadata(metadata, clock.now()),
    spec,
    status,
  });

  const handlers: Handlers<typeof OperatorService> = {
    createOperator: async ({ username }, call) => {
      requireFreeUsername(username, users);
      const now = clock.now();
      const { password, passwordHash } = newPassword();
      const user: User = {
        metadata: newMetadata(username, now),
        spec: { passwordHash, operator: true },
        status: {},
      };
      return mutate(deps, call, { action: "operator.create", kind: "user", visibleIn: [users] }, (unit) => {
        unit.claimName(userKind, "", username, username);
        unit.create(userKind, user);
        return { id: username, result: { username, password } };
      });
    },

    listOperators: async ({ page }, call) => {
      const { items, ...next } = adminPage(users, ({ spec }) => spec.operator, page, call, cursors, "operators");
      const operators = items.map(({ metadata }) => ({
        username: metadata.id,
        createdAt: timestampFromMs(metadata.createdAt),
        updatedAt: timestampFromMs(metadata.updatedAt),
      }));
      return { operators, ...next };
    },

    rotateOperator: ({ username }, call) =>
      mutate(deps, call, { action: "operator.rotate", kind: "user", visibleIn: [users] }, (unit) => {
        const before = require(username);
        const { password, passwordHash } = newPassword();
        unit.update(
          userKind,
          before,
          changed(before.object, { passwordHash, operator: true, ...nextTokenGeneration(before.object.spec) }),
        );
        return { id: username, result: { username, password } };
      }),

    revokeOperator: ({ username }, call) =>
      mutate(deps, call, { action: "operator.revoke", kind: "user", visibleIn: [users] }, (unit) => {
        const before = require(username);
        const other = [...users.values()].find(({ object }) => object.spec.operator && object !== before.object);
        if (other === undefined) throw new HoldfastError("LAST_OPERATOR", `${username} is the only operator.`);
        // Two operators who concurrently revoke each other conflict.
        unit.onlyWhile({ key: keyOf(userKind, other.object.metadata.id), modRevision: other.modRevision });
        if ([...memberships.values()].some(({ object }) => object.metadata.name === username)) {
          unit.update(userKind, before, changed(before.object, { ...before.object.spec, operator: false }));
        } else {
          unit.remove(userKind, before);
          unit.releaseName(userKind, "", username);
        }
        return { id: username, result: create(EmptySchema) };
      }),

    resetUser: ({ userId }, call) => deps.setupTokens.reset(userId, call),
  };
  return serve(OperatorService, handlers);
}
