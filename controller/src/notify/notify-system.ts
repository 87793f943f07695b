import { targetFormat } from "@holdfast/egress/target.ts";
import { type SchemaRule, formatRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import {
  CreateChannelRequestSchema,
  NewChannelConfigSchema,
  UpdateChannelRequestSchema,
} from "@holdfast/proto/holdfast/v1/channel_pb.ts";
import { CreateWebhookRequestSchema, UpdateWebhookRequestSchema } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { organizationKind } from "#access/organization/organization.ts";
import { quotasPart } from "#access/organization/quotas.ts";
import { egressPart } from "#egress-system.ts";
import type { Use } from "#kernel/assembly.ts";
import { installationPart } from "#kernel/installation.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { optInOf } from "#kernel/outbox/event-definition.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { System } from "#kernel/system.ts";
import { channelUsers, createChannelApi } from "./channel/channel-api.ts";
import { createChannelConfirmations, createConfirmationPage } from "./channel/channel-confirmation.ts";
import { createChannelReceivers } from "./channel/channel-receivers.ts";
import { channelKind } from "./channel/channel.ts";
import { createLinkRateLimit, linkRateLimitKind } from "./channel/link-rate-limit.ts";
import { createMailDigestQueue } from "./mail/mail-digest-queue.ts";
import { startMailDigests } from "./mail/mail-digest.ts";
import { createMailRateLimit, createMailSender } from "./mail/mail-sender.ts";
import { type MailSettings, mailSettings } from "./mail/mail-settings.ts";
import { createMailer } from "./mail/mailer.ts";
import { notifyEventDefinitions } from "./notify-event-definitions.ts";
import { createDeliveries } from "./webhook/deliveries.ts";
import { createDeliveryDispatcher } from "./webhook/delivery-dispatcher.ts";
import { allReceivers } from "./webhook/receiver.ts";
import { createWebhookApi } from "./webhook/webhook-api.ts";
import { createWebhookReceivers } from "./webhook/webhook-receivers.ts";
import { webhookKind } from "./webhook/webhook.ts";

const hourMs = 3_600_000;

/**
 * Webhooks and alert channels. A delivery is inserted into the history together with its event (`planDeliveries`), by
 * the controller that moves the outbox. The dispatcher of that controller sends deliveries immediately if limits allow
 * it, and otherwise reads them from the history when they are due. An attempt and the time of the next one are recorded
 * before the capacity of the attempt is released, so a crash repeats a delivery and loses none. Mail has a rate limit
 * per address; alerts above it are queued and sent as one digest.
 */
export const notifySystem = declareSystem({
  name: "notify",
  settings: mailSettings,
  scopes: { webhooks: { verbs: ["read", "write"], completeFrom: "admin" } },
  audited: {
    "holdfast.v1.WebhookService": "webhook",
    "holdfast.v1.ChannelService": "channel",
  },
  events: notifyEventDefinitions,
  open: openNotifySystem,
});

function openNotifySystem(kernel: Kernel, use: Use, settings: MailSettings): System {
  const { baseUrl, eventTypes } = use(installationPart);
  const { users: egress, operators: operatorEgress } = use(egressPart);
  const { collections, history, shards, clock, log } = kernel;
  const webhooks = collections.open(webhookKind);
  const channels = collections.open(channelKind);
  const organizations = collections.open(organizationKind);
  const deliveries = createDeliveries(history.sql);
  const digests = createMailDigestQueue(history.sql);
  const mailer = createMailer(settings, { egress: operatorEgress, log });
  const all = {
    ...kernel,
    baseUrl,
    eventTypes,
    quotas: use(quotasPart),
    isOptIn: optInOf(eventTypes),
    egress,
    webhooks,
    channels,
    organizations,
    deliveries,
    mailer,
    digests,
  };
  const confirmations = createChannelConfirmations(all);
  const mailRateLimit = createMailRateLimit(clock);
  const mail = createMailSender({ ...all, rateLimit: mailRateLimit, confirmations });
  const linkRateLimit = createLinkRateLimit({ ...kernel, linkRateLimits: collections.open(linkRateLimitKind) });
  const receivers = allReceivers([createWebhookReceivers(all), createChannelReceivers({ ...all, mail })]);
  const dispatcher = createDeliveryDispatcher({ ...kernel, deliveries, receivers, ownership: shards });
  const digesting =
    mailer === undefined
      ? undefined
      : startMailDigests({ ...all, mailer, rateLimit: mailRateLimit, ownership: shards });
  return {
    name: "notify",
    rpcs: [
      createWebhookApi(all),
      createChannelApi({ ...all, linkRateLimit, channelUsers: use(channelUsers), sendsMail: mailer !== undefined }),
    ],
    schemaRules: notifySchemaRules(eventTypes.keys()),
    planners: [dispatcher],
    pages: [createConfirmationPage(confirmations, baseUrl)],
    work: [
      createPeriodic("delivery-sweep", hourMs, async (signal) => {
        await deliveries.retainOnly([...webhooks.ids(), ...channels.ids()]);
        await linkRateLimit.sweep(signal);
      }),
    ],
    async close() {
      await digesting?.close();
      await dispatcher.stop();
    },
  };
}

const ofWebhook = { required: ["url"], properties: { address: false } };
const ofMail = { required: ["address"], properties: { url: false } };

/** Restricts event types to the types that systems of this version declare, and a channel's config to its type. */
function notifySchemaRules(eventTypes: Iterable<string>): readonly SchemaRule[] {
  const event = { enum: [...eventTypes] };
  return [
    [CreateWebhookRequestSchema.field.url, targetFormat],
    [UpdateWebhookRequestSchema.field.url, targetFormat],
    [CreateWebhookRequestSchema.field.events, event],
    [UpdateWebhookRequestSchema.field.events, event],
    [NewChannelConfigSchema.field.url, targetFormat],
    [NewChannelConfigSchema.field.address, formatRule("email")],
    [
      CreateChannelRequestSchema,
      {
        oneOf: [
          { properties: { type: { const: "webhook" }, config: ofWebhook } },
          { properties: { type: { const: "email" }, config: ofMail } },
        ],
      },
    ],
    [UpdateChannelRequestSchema.field.config, { oneOf: [ofWebhook, ofMail] }],
  ];
}
