import type { ServiceEventType } from "../managed-service/service-events.ts";

/** What one member of an event's data is. */
export interface DataField {
  readonly type: "string" | "number" | "uuid" | "time";
  readonly meaning: string;
  readonly optional?: true;
}

export interface EventDefinition {
  /** Completes "It happens when ...". */
  readonly when: string;
  readonly data: Readonly<Record<string, DataField>>;
  readonly example: Readonly<Record<string, unknown>>;
}

const serviceData = {
  service_id: { type: "uuid", meaning: "the service" },
  service_name: { type: "string", meaning: "its name then" },
  database_type: { type: "string", meaning: "its engine" },
  status: { type: "string", meaning: "its status then" },
  error_message: { type: "string", meaning: "what went wrong, while the service has an error", optional: true },
} as const satisfies EventDefinition["data"];

const serviceExample = {
  service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
  service_name: "orders",
  database_type: "postgresql",
};

const running = { ...serviceExample, status: "Running" };

const webhookData = {
  webhook_id: { type: "uuid", meaning: "the endpoint" },
} as const satisfies EventDefinition["data"];

const webhookId = "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90";

/** Every type of event that the platform makes, by its name (spec 2, Events). A new type is a new entry here. */
export const eventDefinitions = {
  "service.running": { when: "a service is ready to use", data: serviceData, example: running },
  "service.error": {
    when: "a service enters an error state",
    data: serviceData,
    example: { ...serviceExample, status: "Error", error_message: "The engine did not start in time." },
  },
  "service.stopped": {
    when: "a service has stopped",
    data: serviceData,
    example: { ...serviceExample, status: "Stopped" },
  },
  "service.deleted": {
    when: "a service is gone with all that it had",
    data: serviceData,
    example: { ...serviceExample, status: "Deleting" },
  },
  "service.expiring": {
    when: "the end of a service's time to live comes near",
    data: {
      ...serviceData,
      expires_at: { type: "time", meaning: "when it will be deleted" },
      hours_left: { type: "number", meaning: "hours from the warning to the end" },
    },
    example: { ...running, expires_at: "2026-11-22T10:00:00.000Z", hours_left: 24 },
  },
  "service.expiry_held": {
    when: "a service's time is over and something keeps it from being deleted",
    data: { ...serviceData, reason: { type: "string", meaning: "`deletion_protection`" } },
    example: { ...running, reason: "deletion_protection" },
  },
  "webhook.test": {
    when: "a test delivery was asked for; only that endpoint gets it",
    data: { ...webhookData, message: { type: "string", meaning: "a sentence for people" } },
    example: { webhook_id: webhookId, message: "This is a test of your webhook endpoint." },
  },
  "webhook.disabled": {
    when: "the platform switched an endpoint off because it had failed for 5 days",
    data: {
      ...webhookData,
      url: { type: "string", meaning: "where it was" },
      failing_since: { type: "time", meaning: "when the first of the failed attempts was" },
    },
    example: { webhook_id: webhookId, url: "https://example.com/hooks", failing_since: "2026-11-16T10:00:00.000Z" },
  },
} as const satisfies Readonly<Record<ServiceEventType | WebhookEventType, EventDefinition>>;

export type WebhookEventType = "webhook.test" | "webhook.disabled";

export const eventTypes: ReadonlyMap<string, EventDefinition> = new Map(Object.entries(eventDefinitions));
