import type { Egress } from "@holdfast/egress/create-egress.ts";
import type { Quotas } from "#access/organization/quotas.ts";
import { organizationKind } from "#access/organization/organization.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { createPeriodic } from "#kernel/runtime/periodic.ts";
import { type EventDefinition, optInOf } from "#kernel/outbox/event-definition.ts";
import type { System } from "#kernel/system.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import { type ChannelApiDeps, createChannelApi } from "./channel/channel-api.ts";
import { createChannelConfirmations } from "./channel/channel-confirmation.ts";
import { createChannelReceivers } from "./channel/channel-receivers.ts";
import { channelKind } from "./channel/channel.ts";
import { createConfirmationPage } from "./channel/confirmation-page.ts";
import { createLinkPace, linkPaceKind } from "./channel/link-pace.ts";
import { startMailDigests } from "./mail/mail-digest.ts";
import { createMailDigests } from "./mail/mail-digests.ts";
import { createMailPace } from "./mail/mail-pace.ts";
import { createMailSender } from "./mail/mail-sender.ts";
import { type MailSettings, mailSettings } from "./mail/mail-settings.ts";
import { createMailer } from "./mail/mailer.ts";
import { notifyEventDefinitions } from "./notify-event-definitions.ts";
import { createDeliveries } from "./webhook/deliveries.ts";
import { createDeliveryDispatcher } from "./webhook/delivery-dispatcher.ts";
import { allReceivers } from "./webhook/receiver.ts";
import { createWebhookApi } from "./webhook/webhook-api.ts";
import { createWebhookReceivers } from "./webhook/webhook-receivers.ts";
import { webhookKind } from "./webhook/webhook.ts";
import { notifyForms } from "./notify-forms.ts";

interface NotifySystemDeps {
  /** Where clients reach the platform. */
  readonly baseUrl: string;
  readonly egress: Pick<Egress, "users" | "operators">;
  readonly quotas: Quotas;
  readonly eventTypes: ReadonlyMap<string, EventDefinition>;
  /** What keeps a channel from being deleted. */
  readonly usersOfChannel: ChannelApiDeps["usersOf"];
}

const hourMs = 3_600_000;

/** Who is told of events: a delivery comes into the history with its event. */
export const notifySystem = declareSystem({
  name: "notify",
  settings: mailSettings,
  scopes: { webhooks: { rights: ["read", "write"], wholeFrom: "admin" } },
  audited: {
    "holdfast.v1.WebhookService": "webhook",
    "holdfast.v1.ChannelService": "channel",
  },
  events: notifyEventDefinitions,
  open: openNotifySystem,
});

function openNotifySystem(kernel: Kernel, deps: NotifySystemDeps, settings: MailSettings): System {
  const { collections, history, shards, clock, log } = kernel;
  const webhooks = collections.open(webhookKind);
  const channels = collections.open(channelKind);
  const organizations = collections.open(organizationKind);
  const deliveries = createDeliveries(history.sql);
  const digests = createMailDigests(history.sql);
  const egress = deps.egress.users;
  const mailer = createMailer(settings, { egress: deps.egress.operators, log });
  const all = {
    ...kernel,
    ...deps,
    isOptIn: optInOf(deps.eventTypes),
    egress,
    webhooks,
    channels,
    organizations,
    deliveries,
    mailer,
    digests,
  };
  const confirmations = createChannelConfirmations(all);
  const pace = createMailPace(clock);
  const mail = createMailSender({ ...all, pace, confirmations });
  const linkPace = createLinkPace({ ...kernel, linkPaces: collections.open(linkPaceKind) });
  const receivers = allReceivers([createWebhookReceivers(all), createChannelReceivers({ ...all, mail })]);
  const dispatcher = createDeliveryDispatcher({ ...kernel, deliveries, receivers, ownership: shards });
  const digesting = mailer === undefined ? undefined : startMailDigests({ ...all, mailer, pace, ownership: shards });
  return {
    name: "notify",
    rpcs: [
      createWebhookApi(all),
      createChannelApi({ ...all, linkPace, usersOf: deps.usersOfChannel, sendsMail: mailer !== undefined }),
    ],
    forms: notifyForms(deps.eventTypes.keys()),
    planners: [dispatcher],
    pages: [createConfirmationPage(confirmations, deps.baseUrl)],
    work: [
      createPeriodic("delivery-upkeep", hourMs, async (signal) => {
        await deliveries.keepOnly([...webhooks.ids(), ...channels.ids()]);
        await linkPace.sweep(signal);
      }),
    ],
    async close() {
      await digesting?.close();
      await dispatcher.stop();
    },
  };
}
