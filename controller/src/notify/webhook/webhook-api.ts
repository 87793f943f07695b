import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import {
  CreatedWebhookSchema,
  RedeliverResponseSchema,
  RotatedSecretSchema,
  TestWebhookResponseSchema,
  WebhookSchema,
  WebhookService,
} from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { auditOf, commitAndSee, mayTouch, organizationOf, requireUnlimited } from "#access/caller.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import type { Deliveries } from "./deliveries.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import { createKeyedMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { newMetadata, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { checkedEvents, checkedUrl, type EventTypeNames } from "./check-webhook.ts";
import { updateWebhook } from "./update-webhook.ts";
import { deliveryMessage, policyOf, webhookMessage } from "./webhook-message.ts";
import { newSecret, sealSecret, webhookKind, type WebhookObject } from "./webhook.ts";

export interface WebhookApiDeps {
  readonly begin: () => UnitOfWork;
  readonly webhooks: Collection<WebhookObject>;
  readonly organizations: Pick<Collection<unknown>, "reached">;
  readonly quotas: Pick<Quotas, "claim">;
  readonly deliveries: Pick<Deliveries, "attempts" | "repeat">;
  readonly egress: Pick<EgressClient, "check">;
  readonly eventTypes: EventTypeNames;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}

const attemptsMax = 100;
const hourMs = 3_600_000;

/** The RPCs of webhook endpoints; the dispatcher (delivery-dispatcher.ts) sends. */
export function createWebhookApi(deps: WebhookApiDeps): ServedService {
  const { webhooks, deliveries, egress, sealer, cursors, clock } = deps;
  const creating = createKeyedMutex();

  function require(id: string, call: Call): Stored<WebhookObject> {
    const webhook = webhooks.get(id);
    const isTheirs = webhook?.object.metadata.organizationId === organizationOf(call);
    if (webhook === undefined || !isTheirs || !mayTouch(call, "webhook", id))
      throw new HoldfastError("WEBHOOK_NOT_FOUND", "There is no such webhook in the organization.");
    return webhook;
  }

  const commit = (unit: UnitOfWork, call: Call) => commitAndSee(call, unit, [webhooks]);

  const handlers: Handlers<typeof WebhookService> = {
    createWebhook: async (request, call) => {
      requireUnlimited(call);
      const organizationId = organizationOf(call);
      const events = request.events === undefined ? null : checkedEvents(request.events.values, deps.eventTypes);
      const url = await checkedUrl(request.url, egress, call.signal);
      return creating(organizationId, () =>
        retryConflict(call.signal, async () => {
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
          const unit = deps.begin();
          unit.create(webhookKind, webhook);
          await deps.quotas.claim(unit, organizationId, { webhooks: 1 });
          unit.audit(auditOf(call, "webhook.create", "webhook", id));
          unit.storeResponse(call, answer);
          await commitAndSee(call, unit, [deps.organizations, webhooks]);
          return answer;
        }),
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
      return retryConflict(call.signal, async () => {
        const before = require(request.id, call);
        const after = updateWebhook(before.object, request, { url, eventTypes: deps.eventTypes }, clock.now());
        const unit = deps.begin();
        unit.update(webhookKind, before, after);
        unit.audit(auditOf(call, "webhook.update", "webhook", request.id));
        unit.storeResponse(call, create(WebhookSchema, webhookMessage(after)));
        await commit(unit, call);
        return webhookMessage(after);
      });
    },

    deleteWebhook: ({ id }, call) =>
      retryConflict(call.signal, async () => {
        const webhook = require(id, call);
        const unit = deps.begin();
        unit.remove(webhookKind, webhook);
        unit.audit(auditOf(call, "webhook.delete", "webhook", id));
        await commit(unit, call);
        return {};
      }),

    testWebhook: async ({ id }, call) => {
      const { metadata } = requireActive(require(id, call)).object;
      const message = "This is a test of your webhook endpoint.";
      const answer = create(TestWebhookResponseSchema, { message: "A webhook.test event is on its way." });
      const unit = deps.begin();
      unit.event({
        type: "webhook.test",
        organizationId: metadata.organizationId,
        objectKind: "webhook",
        objectId: id,
        data: { webhook_id: id, message },
      });
      unit.audit(auditOf(call, "webhook.test", "webhook", id));
      unit.storeResponse(call, answer);
      await commit(unit, call);
      return answer;
    },

    rotateSecret: ({ id, overlapHours = 24 }, call) =>
      retryConflict(call.signal, async () => {
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
        const unit = deps.begin();
        unit.update(webhookKind, before, {
          ...before.object,
          metadata: nextMetadata(metadata, now),
          spec: { ...spec, sealedSecret: sealSecret(secret, id, sealer), previous },
        });
        unit.audit(auditOf(call, "webhook.rotate-secret", "webhook", id));
        unit.storeResponse(call, answer);
        await commit(unit, call);
        return answer;
      }),

    listDeliveries: async ({ id }, call) => {
      require(id, call);
      return { deliveries: (await deliveries.attempts(id, attemptsMax)).map(deliveryMessage) };
    },

    redeliver: async ({ id, deliveryId }, call) => {
      requireActive(require(id, call));
      // First the delivery, then its audit entry: a crash between them delivers at most twice.
      if (!(await deliveries.repeat(id, deliveryId)))
        throw new HoldfastError("DELIVERY_NOT_FOUND", "The webhook has no such delivery.");
      const answer = create(RedeliverResponseSchema, { message: "The event is on its way again." });
      const unit = deps.begin();
      unit.audit(auditOf(call, "webhook.redeliver", "webhook", id));
      unit.storeResponse(call, answer);
      await commit(unit, call);
      return answer;
    },
  };
  return serve(WebhookService, handlers);
}

function requireActive(webhook: Stored<WebhookObject>): Stored<WebhookObject> {
  if (webhook.object.spec.active) return webhook;
  throw new HoldfastError("WRONG_STATE", "The webhook is not active; PATCH active to true first.");
}
