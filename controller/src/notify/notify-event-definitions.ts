import type { EventDefinition } from "#kernel/outbox/event-definition.ts";

const webhookData = {
  webhook_id: { type: "uuid", meaning: "id of the endpoint" },
} as const satisfies EventDefinition["data"];

const webhookId = "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90";

type NotifyEventType = "webhook.test" | "webhook.disabled" | "channel.test" | "channel.confirmation_requested";

/** The events of webhook endpoints and alert channels. */
export const notifyEventDefinitions = {
  "webhook.test": {
    when: "a test delivery was requested; only that endpoint gets it",
    data: { ...webhookData, message: { type: "string", meaning: "a sentence for users" } },
    example: { webhook_id: webhookId, message: "This is a test of your webhook endpoint." },
  },
  "channel.confirmation_requested": {
    when: "a link was requested with which the holder of a channel's e-mail address agrees to get alerts",
    data: { channel_id: { type: "uuid", meaning: "id of the channel" } },
    example: { channel_id: "0198f2a4-9f4d-7b28-a3e6-7c1d0b5f8a92" },
  },
  "channel.test": {
    when: "a test of an alert channel was requested; only that channel gets it",
    data: {
      channel_id: { type: "uuid", meaning: "id of the channel" },
      message: { type: "string", meaning: "a sentence for users" },
    },
    example: {
      channel_id: "0198f2a4-9f4d-7b28-a3e6-7c1d0b5f8a92",
      message: "This is a test of your alert channel.",
    },
  },
  "webhook.disabled": {
    when: "the platform disabled an endpoint because it responded with 410 or had failed for 5 days",
    data: {
      ...webhookData,
      url: { type: "string", meaning: "URL of the endpoint" },
      reason: { type: "string", meaning: "`gone` for a response of 410, or `failing`" },
      failing_since: { type: "time", meaning: "time of the first failed attempt after the last successful one" },
    },
    example: {
      webhook_id: webhookId,
      url: "https://example.com/hooks",
      reason: "failing",
      failing_since: "2026-11-16T10:00:00.000Z",
    },
  },
} as const satisfies Readonly<Record<NotifyEventType, EventDefinition>>;
