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
import { requireUnlimited } from "#access/caller.ts";
import { mutate, type MutationOutcome } from "#access/mutate.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
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

/**
 * The RPCs of keys. Before a call returns, processes that follow this controller apply the change, or a second passes.
 */
export function createKeyHandlers(deps: InferenceApiDeps): KeyHandlers {
  const { keys, organizations, ledger, cursors, clock, feed } = deps;

  function require(id: string, organizationId: string): Stored<InferenceKey> {
    const found = keys.get(id);
    if (found?.object.metadata.organizationId === organizationId) return found;
    throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such inference key in the organization.");
  }

  /** Changes a key, and waits until every process that follows this controller has the change. */
  async function change<A>(
    verb: string,
    call: Call,
    work: (unit: Changes) => MutationOutcome<A> | Promise<MutationOutcome<A>>,
  ) {
    const mutation = { action: `inference-key.${verb}`, kind: inferenceKeyKind.name, visibleIn: [organizations, keys] };
    const response = await mutate(deps, call, mutation, work);
    await feed.untilServed();
    return response;
  }

  return {
    async createInferenceKey(request, call) {
      requireUnlimited(call);
      const organizationId = ownOrganization(request.orgId, call);
      const expiresAt = request.expiresAt === undefined ? null : futureOf(request.expiresAt, clock.now());
      return change("create", call, async (unit) => {
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
        const response = createdKeyMessage(key, secret);
        unit.create(inferenceKeyKind, key);
        await deps.quotas.claim(unit, organizationId, { inferenceKeys: 1 });
        return { id, response };
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
      const changed = await change("update", call, async (unit) => {
        const before = require(request.id, organizationId);
        const after = updated(before.object, request, clock.now());
        unit.update(inferenceKeyKind, before, after);
        return { id: request.id, response: keyMessage(after) };
      });
      await ledger.recallExcess(rpmAccount(request.id), call.signal);
      await ledger.recallExcess(tokensAccount(request.id, periodOf(clock.now())), call.signal);
      return changed;
    },

    deleteInferenceKey: ({ orgId, id }, call) =>
      change("delete", call, async (unit) => {
        const before = require(id, ownOrganization(orgId, call));
        unit.remove(inferenceKeyKind, before);
        return { id, result: create(EmptySchema) };
      }),

    async rotateInferenceKey({ orgId, id }, call) {
      requireUnlimited(call);
      const organizationId = ownOrganization(orgId, call);
      return change("rotate", call, async (unit) => {
        const before = require(id, organizationId);
        const secret = newInferenceSecret(id);
        const { object } = before;
        const after: InferenceKey = {
          ...object,
          metadata: nextMetadata(object.metadata, clock.now()),
          spec: { ...object.spec, secretHash: hashOfSecret(secret) },
        };
        const response = createdKeyMessage(after, secret);
        unit.update(inferenceKeyKind, before, after);
        return { id, response };
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

/** Applies the fields of the mask; null removes a limit or an expiry. */
function updated(key: InferenceKey, request: UpdateInferenceKeyRequest, now: number): InferenceKey {
  const named = request.updateMask?.paths ?? [];
  if (named.length === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  const unknownPath = named.find((path) => !paths.includes(path));
  if (unknownPath !== undefined)
    throw invalid({
      field: "update_mask",
      code: "unknown_field",
      detail: `names ${unknownPath}, which cannot be changed`,
    });
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
