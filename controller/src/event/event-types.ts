import type { ServiceEventType } from "../managed-service/service-events.ts";

/** What one member of an event's data is. */
export interface DataField {
  readonly type: "string" | "number" | "boolean" | "uuid" | "time" | "string[]";
  readonly meaning: string;
  readonly optional?: true;
}

export interface EventDefinition {
  /** Completes "It happens when ...". */
  readonly when: string;
  readonly data: Readonly<Record<string, DataField>>;
  readonly example: Readonly<Record<string, unknown>>;
  /** Filters may name it already; this version makes none yet. */
  readonly planned?: true;
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

const maintenanceData = {
  ...serviceData,
  operation_id: { type: "uuid", meaning: "the operation that applies them" },
  update_ids: { type: "string[]", meaning: "the updates" },
  automatic: { type: "boolean", meaning: "it began by itself, in the window or at the end of a notice" },
} as const satisfies EventDefinition["data"];

const maintenanceExample = {
  operation_id: "0198f2a4-6f9a-7b02-9c1d-5e2f7a8b4c60",
  update_ids: ["trixie-3f2a9c0d51e78b64"],
  automatic: true,
};

const webhookData = {
  webhook_id: { type: "uuid", meaning: "the endpoint" },
} as const satisfies EventDefinition["data"];

const webhookId = "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90";

const backupData = {
  service_id: { type: "uuid", meaning: "the service" },
  backup_id: { type: "uuid", meaning: "the backup" },
  backup_type: { type: "string", meaning: "`automated` or `manual`" },
  duration_seconds: { type: "number", meaning: "how long it took" },
} as const satisfies EventDefinition["data"];

const backupExample = {
  service_id: serviceExample.service_id,
  backup_id: "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42",
  backup_type: "automated",
  duration_seconds: 41.5,
};

const alertData = {
  service_id: { type: "uuid", meaning: "the service" },
  alert_name: { type: "string", meaning: "the rule" },
  metric: { type: "string", meaning: "what it looks at" },
  threshold: { type: "number", meaning: "its limit" },
  current_value: { type: "number", meaning: "the value that made it so" },
} as const satisfies EventDefinition["data"];

const alertExample = {
  service_id: serviceExample.service_id,
  alert_name: "disk nearly full",
  metric: "disk_usage_percent",
  threshold: 90,
};

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
  "service.maintenance_scheduled": {
    when: "an update of a service has a time at which it will be applied, or another one than before: a day ahead, urgent ones at once",
    data: {
      ...serviceData,
      update_id: { type: "string", meaning: "the update" },
      kind: { type: "string", meaning: "`engine_minor`, `image`, `guest_kernel` or `restart`" },
      title: { type: "string", meaning: "what it is, for people" },
      urgent: { type: "boolean", meaning: "it waits for the window no longer than its notice" },
      apply_at: { type: "time", meaning: "when it begins unless it is applied before" },
    },
    example: {
      ...running,
      update_id: "trixie-3f2a9c0d51e78b64",
      kind: "engine_minor",
      title: "postgresql 17.10 to 17.11",
      urgent: false,
      apply_at: "2026-11-22T03:17:00.000Z",
    },
  },
  "service.maintenance_started": {
    when: "updates of a service begin to be applied",
    data: maintenanceData,
    example: { ...running, ...maintenanceExample },
  },
  "service.maintenance_completed": {
    when: "updates of a service were applied",
    data: maintenanceData,
    example: { ...running, ...maintenanceExample },
  },
  "service.maintenance_failed": {
    when: "updates of a service could not be applied",
    data: {
      ...maintenanceData,
      error_message: { type: "string", meaning: "what went wrong" },
      taken_back: { type: "boolean", meaning: "the service runs as before; false: it is in Error" },
      data_restored: {
        type: "boolean",
        meaning: "the data went back to the snapshot from before the update; false: they stayed as they were",
      },
    },
    example: {
      ...running,
      ...maintenanceExample,
      error_message: "The engine did not start. The service runs from 17.10 again, with all its data.",
      taken_back: true,
      data_restored: false,
    },
  },
  "backup.completed": {
    when: "a scheduled or manual backup succeeded",
    data: { ...backupData, size_bytes: { type: "number", meaning: "its size in the object store" } },
    example: { ...backupExample, size_bytes: 52_428_800 },
    planned: true,
  },
  "backup.failed": {
    when: "an attempt to take a backup failed",
    data: { ...backupData, error_message: { type: "string", meaning: "what went wrong" } },
    example: { ...backupExample, error_message: "The object store did not answer." },
    planned: true,
  },
  "alert.fired": {
    when: "a metric passes the threshold of an alert rule",
    data: alertData,
    example: { ...alertExample, current_value: 93.2 },
    planned: true,
  },
  "alert.resolved": {
    when: "the metric of a fired alert is normal again",
    data: {
      ...alertData,
      fired_at: { type: "time", meaning: "when it fired" },
      resolved_at: { type: "time", meaning: "when it was normal again" },
    },
    example: {
      ...alertExample,
      current_value: 71.4,
      fired_at: "2026-11-21T09:40:00.000Z",
      resolved_at: "2026-11-21T10:00:00.000Z",
    },
    planned: true,
  },
  "auth.user.deleted": {
    when: "an end user of an app was erased",
    data: {
      user_id: { type: "uuid", meaning: "the user, when the request named them so", optional: true },
      email_digest: {
        type: "string",
        meaning: "keyed digest of the address, when the request named that",
        optional: true,
      },
    },
    example: { user_id: "0198f2a4-9d31-7e24-b18e-4f7a0e2d6c53" },
    planned: true,
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
} as const satisfies Readonly<Record<ServiceEventType | WebhookEventType | PlannedEventType, EventDefinition>>;

/** Types of the specification whose makers are still to come. */
type PlannedEventType = `backup.${"completed" | "failed"}` | `alert.${"fired" | "resolved"}` | "auth.user.deleted";

export type WebhookEventType = "webhook.test" | "webhook.disabled";

export const eventTypes: ReadonlyMap<string, EventDefinition> = new Map(Object.entries(eventDefinitions));
