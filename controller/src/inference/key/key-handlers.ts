import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { Call, Handlers } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { periodOf, rpmAccount, tokensAccount } from "@holdfast/common/inference/accounts.ts";
import {
  InferenceKeyStatus,
  type InferenceService,
  type UpdateInferenceKeyRequest,
} from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { auditOf, commitAndSee, requireUnlimited } from "#access/caller.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import { type InferenceApiDeps, ownOrganization } from "../inference-api-deps.ts";
import { createdKeyMessage, keyMessage } from "../inference-message.ts";
import { hashOfSecret, type InferenceKey, inferenceKeyKind, newInferenceSecret } from "./inference-key.ts";

type KeyHandlers = Pick<
  Handlers<typeof InferenceService>,
  | "createInferenceKey"
  | "listInferenceKeys"
  | "getInferenceKey"
  | "updateInferenceKey"
  | "deleteInferenceKey"
  | "rotateInferenceKey"
>;

/** The RPCs of keys. A change is in effect at every process that follows this controller before the call returns. */
export function createKeyHandlers(deps: InferenceApiDeps): KeyHandlers {
  const { keys, organizations, ledger, cursors, clock, feed } = deps;

  function require(id: string, organizationId: string): Stored<InferenceKey> {
    const found = keys.get(id);
    if (found?.object.metadata.organizationId === organizationId) return found;
    throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such inference key in the organization.");
  }

  async function seen(unit: ReturnType<typeof deps.begin>, call: Call): Promise<void> {
    await commitAndSee(call, unit, [organizations, keys]);
    await feed.untilServed();
  }

  return {
    async createInferenceKey(request, call) {
      requireUnlimited(call);
      const organizationId = ownOrganization(request.orgId, call);
      const expiresAt = request.expiresAt === undefined ? null : futureOf(request.expiresAt, clock.now());
      return retryConflict(call.signal, async () => {
        const id = deps.newId();
        const secret = newInferenceSecret(id);
        const { monthlyTokenLimit, rateLimitRpm } = request;
        const key: InferenceKey = {
          metadata: newMetadata(id, clock.now(), { name: request.name, organizationId }),
          spec: {
            secretHash: hashOfSecret(secret),
            monthlyTokenLimit: monthlyTokenLimit === undefined ? null : Number(monthlyTokenLimit),
            rateLimitRpm: rateLimitRpm ?? null,
            expiresAt,
            suspended: false,
          },
          status: {},
        };
        const answer = createdKeyMessage(key, secret);
        const unit = deps.begin();
        unit.create(inferenceKeyKind, key);
        await deps.quotas.claim(unit, organizationId, { inferenceKeys: 1 });
        unit.audit(auditOf(call, "inference-key.create", inferenceKeyKind.name, id));
        unit.storeResponse(call, answer);
        await seen(unit, call);
        return answer;
      });
    },

    async listInferenceKeys(request, call) {
      const organizationId = ownOrganization(request.orgId, call);
      const page = { ...cursors.open(call, "inference-keys", null, request), organizationId };
      const { items, next } = keys.page(() => true, page);
      return { keys: items.map(({ object }) => keyMessage(object)), ...page.next(next) };
    },

    getInferenceKey: async ({ orgId, id }, call) => keyMessage(require(id, ownOrganization(orgId, call)).object),

    async updateInferenceKey(request, call) {
      const organizationId = ownOrganization(request.orgId, call);
      const changed = await retryConflict(call.signal, async () => {
        const before = require(request.id, organizationId);
        const after = updated(before.object, request, clock.now());
        const unit = deps.begin();
        unit.update(inferenceKeyKind, before, after);
        unit.audit(auditOf(call, "inference-key.update", inferenceKeyKind.name, request.id));
        unit.storeResponse(call, keyMessage(after));
        await seen(unit, call);
        return after;
      });
      await ledger.trim(rpmAccount(request.id), call.signal);
      await ledger.trim(tokensAccount(request.id, periodOf(clock.now())), call.signal);
      return keyMessage(changed);
    },

    deleteInferenceKey: ({ orgId, id }, call) =>
      retryConflict(call.signal, async () => {
        const before = require(id, ownOrganization(orgId, call));
        const unit = deps.begin();
        unit.remove(inferenceKeyKind, before);
        unit.audit(auditOf(call, "inference-key.delete", inferenceKeyKind.name, id));
        await seen(unit, call);
        return create(EmptySchema);
      }),

    async rotateInferenceKey({ orgId, id }, call) {
      requireUnlimited(call);
      const organizationId = ownOrganization(orgId, call);
      return retryConflict(call.signal, async () => {
        const before = require(id, organizationId);
        const secret = newInferenceSecret(id);
        const { object } = before;
        const after: InferenceKey = {
          ...object,
          metadata: nextMetadata(object.metadata, clock.now()),
          spec: { ...object.spec, secretHash: hashOfSecret(secret) },
        };
        const answer = createdKeyMessage(after, secret);
        const unit = deps.begin();
        unit.update(inferenceKeyKind, before, after);
        unit.audit(auditOf(call, "inference-key.rotate", inferenceKeyKind.name, id));
        unit.storeResponse(call, answer);
        await seen(unit, call);
        return answer;
      });
    },
  };
}

function futureOf(time: Timestamp, now: number): number {
  const at = timestampMs(time);
  if (at > now) return at;
  throw invalid({ field: "expires_at", code: "past", detail: "must be in the future" });
}

const paths = ["name", "status", "monthly_token_limit", "rate_limit_rpm", "expires_at"];

/** Pure: applies the fields of the mask; null removes a limit or an expiry. */
function updated(key: InferenceKey, request: UpdateInferenceKeyRequest, now: number): InferenceKey {
  const named = request.updateMask?.paths ?? [];
  if (named.length === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  const strange = named.find((path) => !paths.includes(path));
  if (strange !== undefined)
    throw invalid({ field: "update_mask", code: "unknown_field", detail: `names ${strange}, which cannot be changed` });
  for (const [path, value] of [
    ["name", request.name],
    ["status", request.status],
  ] as const)
    if (named.includes(path) && value === undefined)
      throw invalid({ field: path, code: "not_clearable", detail: "must not be null" });
  const { metadata, spec } = key;
  const { monthlyTokenLimit, rateLimitRpm, expiresAt, status } = request;
  return {
    ...key,
    metadata: { ...nextMetadata(metadata, now), name: request.name ?? metadata.name },
    spec: {
      ...spec,
      ...(named.includes("monthly_token_limit") && {
        monthlyTokenLimit: monthlyTokenLimit === undefined ? null : Number(monthlyTokenLimit),
      }),
      ...(named.includes("rate_limit_rpm") && { rateLimitRpm: rateLimitRpm ?? null }),
      ...(named.includes("expires_at") && { expiresAt: expiresAt === undefined ? null : futureOf(expiresAt, now) }),
      ...(status !== undefined && { suspended: status === InferenceKeyStatus.SUSPENDED }),
    },
  };
}
