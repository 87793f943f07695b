import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type Principal, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  CreatedTokenSchema,
  type Token as TokenMessage,
  TokenSchema,
  TokenService,
} from "@holdfast/proto/holdfast/v1/token_pb.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { mutate } from "../mutate.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { actorOf, organizationOf, principalOf, requireScope, requireScopes, requireUnlimited } from "../caller.ts";
import { bootstrapActor, hashPurposes, type TokenCreator, type Token, tokenKind, newSecretText } from "./credential.ts";
import type { CredentialUseTime } from "./last-use.ts";
import { limitFaults } from "./token-resources.ts";

const depthMax = 4;

/** The RPCs of tokens. */
export function createTokenApi(deps: AccessApiDeps): ServedService {
  const { organizations, tokens, lastUse, sealer, cursors, clock } = deps;

  function creatorOf(call: Call): TokenCreator {
    const { kind, id, tokenBinding } = principalOf(call);
    const parent = kind === "token" ? tokens.get(id)?.object.spec.creator : undefined;
    const depth = kind === "token" ? (parent?.depth ?? 0) + 1 : 0;
    if (depth > depthMax)
      throw new HoldfastError("SCOPE_MISSING", `At most ${depthMax} tokens create each other in a chain; use a key.`);
    return { kind, id, actor: actorOf(call), ...tokenBinding, depth };
  }

  const handlers: Handlers<typeof TokenService> = {
    createToken: ({ scopes, ttlSeconds, resources }, call) =>
      mutate(
        deps,
        call,
        { action: "token.create", kind: "token", visibleIn: [organizations, tokens] },
        async (unit) => {
          const organizationId = organizationOf(call);
          deps.scopeCatalog.check(scopes);
          const faults = limitFaults(deps.resources, { resources, scopes }, call);
          if (faults.length > 0) throw invalid(...faults);
          if (principalOf(call).kind !== "user") requireScope(call, "keys:write");
          requireUnlimited(call);
          requireScopes(call, scopes);
          const creator = creatorOf(call);
          const now = clock.now();
          const expiresAt = Math.min(now + ttlSeconds * 1_000, principalOf(call).expiresAt ?? Infinity);
          const id = deps.newId();
          const text = newSecretText("hft_", id);
          const token: Token = {
            metadata: newMetadata(id, now, { organizationId }),
            spec: {
              secretHash: sealer.keyedHash(hashPurposes.token, text),
              scopes: [...scopes],
              expiresAt,
              creator,
              ...(resources.length > 0 && { resources: resources.map(({ kind, id: of }) => ({ kind, id: of })) }),
            },
            status: {},
          };
          unit.create(tokenKind, token);
          await deps.quotas.claim(unit, organizationId, { tokens: 1 });
          const response = create(CreatedTokenSchema, { ...commonOf(token), token: text });
          return { id, response };
        },
      ),

    listTokens: async (request, call) => {
      const page = { ...cursors.open(call, "tokens", null, request), organizationId: organizationOf(call) };
      const { items, next } = tokens.page(() => true, page);
      const messages = items.map(({ object }) => tokenMessage(object, lastUse.of(object.metadata.id)));
      return { tokens: messages, ...page.next(next) };
    },

    deleteToken: ({ id }, call) =>
      mutate(deps, call, { action: "token.delete", kind: "token", visibleIn: [tokens] }, async (unit) => {
        const token = tokens.get(id);
        if (token === undefined || token.object.metadata.organizationId !== organizationOf(call))
          throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such token in the organization.");
        if (!isOwn(token.object, principalOf(call))) requireScope(call, "keys:write");
        unit.remove(tokenKind, token);
        return { id, result: create(EmptySchema) };
      }),
  };
  return serve(TokenService, handlers);
}

/** True for the token itself, and for the user who created it. */
function isOwn({ metadata, spec }: Token, { kind, id }: Principal): boolean {
  if (kind === "token") return metadata.id === id;
  return kind === "user" && spec.creator?.kind === "user" && spec.creator.id === id;
}

function commonOf({ metadata, spec }: Token) {
  return {
    id: metadata.id,
    scopes: [...spec.scopes],
    resources: (spec.resources ?? []).map(({ kind, id }) => ({ kind, id })),
    createdAt: timestampFromMs(metadata.createdAt),
    ...(spec.expiresAt !== null && { expiresAt: timestampFromMs(spec.expiresAt) }),
  };
}

function tokenMessage(token: Token, use: CredentialUseTime | undefined): TokenMessage {
  const { creator, owner } = token.spec;
  const createdBy = creator?.actor ?? (owner === undefined ? bootstrapActor : `${owner.kind}:${owner.name}`);
  return create(TokenSchema, {
    ...commonOf(token),
    isLimited: token.spec.resources !== undefined,
    createdBy,
    ...(use && { lastUsedAt: timestampFromMs(use.at), lastUsedFrom: use.source }),
  });
}
