import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import {
  CreatedWebhookSchema,
  type CreateWebhookRequest,
  RedeliverResponseSchema,
  RotatedSecretSchema,
  TestWebhookResponseSchema,
  type UpdateWebhookRequest,
  WebhookSchema,
  WebhookService,
} from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { auditOf, mayTouch, organizationOf, requireUnlimited } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { checkedUrl, eventFaults, type EventTypeNames, urlFaults } from "./check-webhook.ts";
import { deliveryMessage, policyOf, webhookMessage } from "./webhook-message.ts";
import { newSecret, sealSecret, webhookKind, type WebhookObject, type WebhookSpec } from "./webhook.ts";

export interface WebhookApiDeps {
  readonly begin: () => UnitOfWork;
  readonly auditedActs: Pick<AuditedActs, "act">;
  readonly webhooks: Collection<WebhookObject>;
  readonly organizations: Pick<Collection<unknown>, "untilRevision">;
  readonly quotas: Pick<Quotas, "claim">;
  readonly deliveries: Pick<Deliveries, "attempts" | "repeat">;
  readonly egress: Pick<EgressClient, "check">;
  readonly eventTypes: EventTypeNames;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

const kind = "webhook";
const attemptsMax = 100;
const hourMs = 3_600_000;

/** The RPCs of webhook endpoints; the dispatcher (delivery-dispatcher.ts) sends the events. */
export function createWebhookApi(deps: WebhookApiDeps): ServedService {
  const { webhooks, deliveries, egress, sealer, cursors, clock } = deps;
  const creating = createKeyedMutex();

  function require(id: string, call: Call): Stored<WebhookObject> {
    const webhook = webhooks.get(id);
    const isOfOrganization = webhook?.object.metadata.organizationId === organizationOf(call);
    if (webhook === undefined || !isOfOrganization || !mayTouch(call, "webhook", id))
      throw new HoldfastError("WEBHOOK_NOT_FOUND", "There is no such webhook in the organization.");
    return webhook;
  }

  const handlers: Handlers<typeof WebhookService> = {
    createWebhook: async (request, call) => {
      requireUnlimited(call);
      const organizationId = organizationOf(call);
      const events = request.events === undefined ? null : [...new Set(request.events.values)];
      const url = await checkedUrl(request.url, egress, call.signal);
      return creating(organizationId, () =>
        mutate(
          deps,
          call,
          { action: "webhook.create", kind, visibleIn: [deps.organizations, webhooks] },
          async (unit) => {
            const id = deps.newId();
            const now = clock.now();
            const secret = newSecret();
            const webhook: WebhookObject = {
              metadata: newMetadata(id, now, { organizationId }),
              spec: {
                url,
                events,
                active: true,
                retryPolicy: policyOf(request.retryPolicy ?? 0),
                sealedSecret: sealSecret(secret, id, sealer),
                previous: null,
              },
              status: { disabledAt: null },
            };
            const answer = create(CreatedWebhookSchema, { ...webhookMessage(webhook), secret });
            unit.create(webhookKind, webhook);
            await deps.quotas.claim(unit, organizationId, { webhooks: 1 });
            return { id, response: answer };
          },
        ),
      );
    },

    listWebhooks: async (request, call) => {
      const page = { ...cursors.open(call, "webhooks", null, request), organizationId: organizationOf(call) };
      const { items, next } = webhooks.page(({ metadata }) => mayTouch(call, "webhook", metadata.id), page);
      return { webhooks: items.map(({ object }) => webhookMessage(object)), ...page.next(next) };
    },

    getWebhook: async ({ id }, call) => webhookMessage(require(id, call).object),

    updateWebhook: async (request, call) => {
      require(request.id, call);
      const url = request.url === undefined ? undefined : await checkedUrl(request.url, egress, call.signal);
      return mutate(deps, call, { action: "webhook.update", kind, visibleIn: [webhooks] }, async (unit) => {
        const before = require(request.id, call);
        const after = updateWebhook(before.object, request, url, clock.now());
        unit.update(webhookKind, before, after);
        return { id: request.id, response: create(WebhookSchema, webhookMessage(after)) };
      });
    },

    deleteWebhook: ({ id }, call) =>
      mutate(deps, call, { action: "webhook.delete", kind, visibleIn: [webhooks] }, async (unit) => {
        const webhook = require(id, call);
        unit.remove(webhookKind, webhook);
        return { id, result: {} };
      }),

    testWebhook: async ({ id }, call) => {
      const { metadata } = requireActive(require(id, call)).object;
      const message = "This is a test of your webhook endpoint.";
      const answer = create(TestWebhookResponseSchema, { message: "A webhook.test event will be sent." });
      return mutate(deps, call, { action: "webhook.test", kind, visibleIn: [webhooks] }, (unit) => {
        unit.event({
          type: "webhook.test",
          organizationId: metadata.organizationId,
          objectKind: "webhook",
          objectId: id,
          data: { webhook_id: id, message },
        });
        return { id, response: answer };
      });
    },

    rotateSecret: ({ id, overlapHours = 24 }, call) =>
      mutate(deps, call, { action: "webhook.rotate-secret", kind, visibleIn: [webhooks] }, async (unit) => {
        const before = require(id, call);
        const { metadata, spec } = before.object;
        const now = clock.now();
        const secret = newSecret();
        const validUntil = now + overlapHours * hourMs;
        const previous = overlapHours === 0 ? null : { sealedSecret: spec.sealedSecret, validUntil };
        const answer = create(RotatedSecretSchema, {
          secret,
          ...(previous !== null && { previousValidUntil: timestampFromMs(validUntil) }),
        });
        unit.update(webhookKind, before, {
          ...before.object,
          metadata: nextMetadata(metadata, now),
          spec: { ...spec, sealedSecret: sealSecret(secret, id, sealer), previous },
        });
        return { id, response: answer };
      }),

    listDeliveries: async ({ id }, call) => {
      require(id, call);
      return { deliveries: (await deliveries.attempts(id, attemptsMax)).map(deliveryMessage) };
    },

    redeliver: async ({ id, deliveryId }, call) => {
      requireActive(require(id, call));
      await deps.auditedActs.act(auditOf(call, "webhook.redeliver", kind, id), async () => {
        if (!(await deliveries.repeat(id, deliveryId)))
          throw new HoldfastError("DELIVERY_NOT_FOUND", "The webhook has no such delivery.");
      });
      return create(RedeliverResponseSchema, { message: "The event will be sent again." });
    },
  };
  const check = ({ url, events }: CreateWebhookRequest | UpdateWebhookRequest) => [
    ...urlFaults(url),
    ...eventFaults(events?.values ?? [], deps.eventTypes),
  ];
  return serve(WebhookService, handlers, { createWebhook: check, updateWebhook: check });
}

function requireActive(webhook: Stored<WebhookObject>): Stored<WebhookObject> {
  if (webhook.object.spec.active) return webhook;
  throw new HoldfastError("WRONG_STATE", "The webhook is not active; PATCH active to true first.");
}

/** Applies the fields of the mask; `url` is the validated URL of the request. Throws INVALID_REQUEST. */
function updateWebhook(
  webhook: WebhookObject,
  request: UpdateWebhookRequest,
  url: string | undefined,
  now: number,
): WebhookObject {
  const paths = request.updateMask?.paths ?? [];
  if (paths.length === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  let change: Partial<WebhookSpec> = {};
  for (const path of paths) change = { ...change, ...changeOf(path, request, url) };
  const { metadata, spec, status } = webhook;
  return {
    metadata: nextMetadata(metadata, now),
    spec: { ...spec, ...change },
    // A change of `active` by a user clears the time at which the platform disabled the endpoint.
    status: change.active === undefined ? status : { ...status, disabledAt: null },
  };
}

function changeOf(path: string, request: UpdateWebhookRequest, url: string | undefined): Partial<WebhookSpec> {
  const missing = () => invalid({ field: path, code: "not_clearable", detail: "must not be null" });
  switch (path) {
    case "url":
      if (url === undefined) throw missing();
      return { url };
    case "events":
      return { events: request.events === undefined ? null : [...new Set(request.events.values)] };
    case "active":
      if (request.active === undefined) throw missing();
      return { active: request.active };
    case "retry_policy":
      if (request.retryPolicy === undefined) throw missing();
      return { retryPolicy: policyOf(request.retryPolicy) };
    default:
      throw new HoldfastError("INVALID_REQUEST", `update_mask names ${path}, which cannot be changed.`, {
        errors: [{ field: "update_mask", pointer: "/update_mask", code: "unknown_field", detail: `has ${path}` }],
      });
  }
}
