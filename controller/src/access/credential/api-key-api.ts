import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  type ApiKey as ApiKeyMessage,
  ApiKeySchema,
  ApiKeyService,
  type CreatedApiKey,
  CreatedApiKeySchema,
} from "@holdfast/proto/holdfast/v1/api_key_pb.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { mutate } from "../mutate.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { actorOf, organizationOf, principalOf, requireScopes, requireUnlimited } from "../caller.ts";
import { type ApiKey, apiKeyKind, hashPurposes } from "./credential.ts";
import type { CredentialUseTime } from "./last-use.ts";

/** The id (`hfk_...`) and secret (`hfs_...`) of a new key. */
export function newKeyPair(): { id: string; secret: string } {
  return { id: `hfk_${randomBytes(12).toString("hex")}`, secret: newKeySecret() };
}

function newKeySecret(): string {
  return `hfs_${randomBytes(24).toString("base64url")}`;
}

/** The RPCs of API keys: a caller grants only scopes that it has. */
export function createApiKeyApi(deps: AccessApiDeps): ServedService {
  const { organizations, apiKeys, lastUse, sealer, cursors, clock } = deps;

  function require(id: string, call: Call): Stored<ApiKey> {
    const found = apiKeys.get(id);
    if (found === undefined || found.object.metadata.organizationId !== organizationOf(call))
      throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such key in the organization.");
    return found;
  }

  /** Expiry of a new key, which is not after the expiry of the creating credential; null: no expiry. */
  function expiryOf(requested: number | undefined, call: Call): number | null {
    const own = principalOf(call).expiresAt ?? null;
    if (requested === undefined) return own;
    if (requested <= clock.now()) throw invalid({ field: "expires_at", code: "past", detail: "must be in the future" });
    if (own !== null && requested > own) {
      const detail = `must not be after ${new Date(own).toISOString()}, when your own credential expires`;
      throw invalid({ field: "expires_at", code: "too_late", detail });
    }
    return requested;
  }

  const handlers: Handlers<typeof ApiKeyService> = {
    createApiKey: ({ name, scopes, expiresAt }, call) =>
      mutate(
        deps,
        call,
        { action: "api-key.create", kind: "api-key", visibleIn: [organizations, apiKeys] },
        async (unit) => {
          const organizationId = organizationOf(call);
          deps.scopeCatalog.check(scopes);
          const end = expiryOf(expiresAt && timestampMs(expiresAt), call);
          requireUnlimited(call);
          requireScopes(call, scopes);
          const now = clock.now();
          const { id, secret } = newKeyPair();
          const key: ApiKey = {
            metadata: newMetadata(id, now, { name, organizationId }),
            spec: {
              secretHash: sealer.keyedHash(hashPurposes.apiKey, secret),
              scopes: [...scopes],
              expiresAt: end,
              createdBy: actorOf(call),
            },
            status: {},
          };
          unit.create(apiKeyKind, key);
          await deps.quotas.claim(unit, organizationId, { apiKeys: 1 });
          const response = createdMessage(key, secret);
          return { id, response };
        },
      ),

    listApiKeys: async (request, call) => {
      const page = { ...cursors.open(call, "api-keys", null, request), organizationId: organizationOf(call) };
      const { items, next } = apiKeys.page(() => true, page);
      const messages = items.map(({ object }) => keyMessage(object, lastUse.of(object.metadata.id), clock.now()));
      return { apiKeys: messages, ...page.next(next) };
    },

    deleteApiKey: ({ id }, call) =>
      mutate(deps, call, { action: "api-key.delete", kind: "api-key", visibleIn: [apiKeys] }, async (unit) => {
        const key = require(id, call);
        unit.remove(apiKeyKind, key);
        return { id, result: create(EmptySchema) };
      }),

    rotateApiKey: ({ id, overlapHours = 0 }, call) =>
      mutate(deps, call, { action: "api-key.rotate", kind: "api-key", visibleIn: [apiKeys] }, async (unit) => {
        const before = require(id, call);
        const { metadata, spec } = before.object;
        requireUnlimited(call);
        // The caller gets the new secret, and with it the key's scopes until the key expires.
        requireScopes(call, spec.scopes);
        const own = principalOf(call).expiresAt ?? null;
        if (own !== null && (spec.expiresAt === null || spec.expiresAt > own) && principalOf(call).id !== id)
          throw new HoldfastError("SCOPE_MISSING", "The key expires after your own credential.");
        const now = clock.now();
        const secret = newKeySecret();
        const { previous: _, ...unchanged } = spec;
        const after: ApiKey = {
          ...before.object,
          metadata: nextMetadata(metadata, now),
          spec: {
            ...unchanged,
            secretHash: sealer.keyedHash(hashPurposes.apiKey, secret),
            ...(overlapHours > 0 && {
              previous: { secretHash: spec.secretHash, expiresAt: now + overlapHours * 3_600_000 },
            }),
          },
        };
        unit.update(apiKeyKind, before, after);
        const response = createdMessage(after, secret);
        return { id, response };
      }),
  };
  return serve(ApiKeyService, handlers);
}

function timesOf({ metadata, spec }: ApiKey) {
  return {
    createdAt: timestampFromMs(metadata.createdAt),
    ...(spec.expiresAt !== null && { expiresAt: timestampFromMs(spec.expiresAt) }),
    ...(spec.previous && { previousSecretExpiresAt: timestampFromMs(spec.previous.expiresAt) }),
  };
}

function createdMessage(key: ApiKey, secret: string): CreatedApiKey {
  const { id, name } = key.metadata;
  return create(CreatedApiKeySchema, { id, secret, name, scopes: [...key.spec.scopes], ...timesOf(key) });
}

function keyMessage(key: ApiKey, use: CredentialUseTime | undefined, now: number): ApiKeyMessage {
  const { id, name } = key.metadata;
  const { createdBy, scopes, previous, ...spec } = key.spec;
  const visible: ApiKey = {
    ...key,
    spec: { ...spec, scopes, ...(previous && previous.expiresAt > now && { previous }) },
  };
  return create(ApiKeySchema, {
    id,
    name,
    scopes: [...scopes],
    ...timesOf(visible),
    ...(createdBy !== undefined && { createdBy }),
    ...(use && { lastUsedAt: timestampFromMs(use.at), lastUsedFrom: use.source }),
  });
}
