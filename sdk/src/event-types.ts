// Data of events by type. Times are RFC 3339 strings in UTC.

/** Data of service events. */
export type ServiceEventData = {
  readonly service_id: string;
  /** Name of the service at the time of the event. */
  readonly service_name: string;
  readonly database_type: string;
  /** Status at the time of the event. */
  readonly status: string;
  /** Present while the service has an error. */
  readonly error_message?: string;
};

/** Data of maintenance events: service data, the updates and their operation. */
export type MaintenanceEventData = ServiceEventData & {
  readonly operation_id: string;
  readonly update_ids: readonly string[];
  /** True if the platform started it, in the maintenance window or at the end of a notice. */
  readonly automatic: boolean;
};

/** Data of events of an app's sign-in. */
export type AuthEventData = {
  readonly app_id: string;
  readonly auth_id: string;
  /** Service that its users are in. */
  readonly service_id: string;
  /** Status at the time of the event. */
  readonly status: string;
};

/** Data of backup events. */
export type BackupEventData = {
  readonly service_id: string;
  readonly backup_id: string;
  readonly backup_type: string;
  readonly duration_seconds: number;
};

/** Data of alert events. Channels receive the same without the channel's id. */
export type AlertEventData = {
  /** Id of the alert, the same in alert.fired and alert.resolved. */
  readonly id: string;
  readonly rule_id: string;
  readonly alert_name: string;
  readonly service_id: string;
  readonly service_name: string;
  readonly node_id: string | null;
  readonly metric: string;
  /** "gt" or "lt". */
  readonly condition: string;
  readonly threshold: number;
  /** Null without data. */
  readonly current_value: number | null;
  readonly severity: string;
  /** "firing", "no_data" or "resolved". */
  readonly state: string;
  readonly since: string;
  readonly fired_at: string;
  readonly notification_channel_id: string | null;
};

/** Data of project events. */
export type ProjectEventData = CompositionEventData & { readonly project_id: string };

/** Data of stack events. */
export type StackEventData = CompositionEventData & { readonly stack_id: string };

/** Data of pipeline events. */
export type PipelineEventData = CompositionEventData & { readonly pipeline_id: string };

type CompositionEventData = {
  readonly name: string;
  /** Description of the failure. */
  readonly detail?: string;
};

/** Data of node events. */
export type NodeEventData = ServiceEventData & {
  readonly node_id: string;
  readonly role: string;
  readonly hostname: string;
  readonly zone: string;
};

/** Data of queue events. */
export type QueueEventData = {
  readonly service_id: string;
  readonly queue_id: string;
  readonly queue_name: string;
  readonly database_name: string;
  /** Status at the time of the event. */
  readonly status: string;
};

/** Data of events of an export integration. */
export type ExportEventData = {
  readonly integration_id: string;
  readonly integration_name: string;
  readonly destination_type: string;
  /** Null for all services of the organization. */
  readonly service_id: string | null;
};

type ExportFailureData = ExportEventData & {
  readonly consecutive_failures: number;
  readonly last_export_error: string;
};

/** Data of events of an organization's inference budget in a month. */
export type InferenceEventData = {
  /** Month in UTC, such as 2026-11. */
  readonly period: string;
  readonly spent_cents: number;
  readonly monthly_cost_limit_cents: number;
};

type StorageEventData = {
  readonly used_pct: number;
  readonly storage_size_gb: number;
  /** Id of the node with the disk. */
  readonly node_id: string;
};

/** The data of each type of event. */
export interface EventData {
  readonly "service.running": ServiceEventData;
  readonly "service.error": ServiceEventData;
  readonly "service.stopped": ServiceEventData;
  readonly "service.deleted": ServiceEventData;
  readonly "service.expiring": ServiceEventData & { readonly expires_at: string; readonly hours_left: number };
  readonly "service.expiry_held": ServiceEventData & { readonly reason: string };
  readonly "service.restored": ServiceEventData & {
    /** "restore", "fork" or "undelete". */
    readonly kind: string;
    readonly source_service_id: string;
    readonly backup_id: string;
    /** Requested recovery point; absent for a restore from a backup. */
    readonly restore_point?: string;
  };
  /** `seconds` in service.failed_over is the time from the start until the new primary accepted a write. */
  readonly "service.failover_started": ServiceEventData & { readonly from_node_id: string; readonly reason: string };
  readonly "service.failed_over": ServiceEventData & {
    readonly from_node_id: string;
    readonly to_node_id: string;
    readonly term: number;
    readonly seconds: number;
  };
  readonly "node.added": NodeEventData;
  readonly "node.removed": NodeEventData;
  readonly "node.unhealthy": NodeEventData & { readonly reason: string };
  readonly "service.slot_lost": ServiceEventData & {
    readonly slot: string;
    readonly database: string;
    readonly plugin: string;
    readonly reason: string;
    readonly from_node_id: string;
    readonly to_node_id: string;
  };
  /**
   * `discarded_bytes` of log after the position `discarded_from` were discarded; `kept_bytes` of them are saved on the
   * node.
   */
  readonly "node.rewound": NodeEventData & {
    readonly discarded_from: string;
    readonly discarded_bytes: number;
    readonly kept_bytes: number;
  };
  /** `missing` lists the host names of disconnected replicas. */
  readonly "service.replication_degraded": ServiceEventData & { readonly missing: readonly string[] };
  readonly "service.storage_low": ServiceEventData & StorageEventData;
  readonly "service.writes_blocked": ServiceEventData & StorageEventData;
  readonly "service.autoscale_failed": ServiceEventData & {
    readonly storage_size_gb: number;
    readonly wanted_size_gb: number;
    readonly reason: string;
  };
  readonly "service.resized": ServiceEventData & {
    readonly operation_id: string;
    readonly plan_name: string;
    readonly storage_size_gb: number;
    readonly from_plan_name: string;
    readonly from_storage_size_gb: number;
  };
  /** Sent only to webhooks whose filter names this type. */
  readonly "service.health_changed": ServiceEventData & {
    readonly from: string;
    readonly to: string;
    readonly reason: string;
    readonly checks: readonly object[];
  };
  readonly "service.recovery_point_stale": ServiceEventData & { readonly newest_point: string };
  readonly "service.maintenance_scheduled": ServiceEventData & {
    readonly update_id: string;
    readonly kind: string;
    readonly title: string;
    readonly urgent: boolean;
    readonly apply_at: string;
  };
  readonly "service.maintenance_started": MaintenanceEventData;
  readonly "service.maintenance_completed": MaintenanceEventData;
  /**
   * `rolled_back`: the service runs as before the update; otherwise its status is Error. `data_restored`: the data were
   * restored from the snapshot before the update; otherwise they are unchanged.
   */
  readonly "service.maintenance_failed": MaintenanceEventData & {
    readonly error_message: string;
    readonly rolled_back: boolean;
    readonly data_restored: boolean;
  };
  readonly "backup.completed": BackupEventData & { readonly size_bytes: number };
  readonly "backup.failed": BackupEventData & { readonly error_message: string };
  readonly "backup.drill_failed": {
    readonly service_id: string;
    readonly drill_id: string;
    readonly backup_id: string;
    readonly code: string;
    readonly error_message: string;
  };
  readonly "backup.gap": { readonly service_id: string; readonly since: string; readonly message: string };
  readonly "inference.budget_warning": InferenceEventData;
  readonly "inference.circuit_opened": InferenceEventData;
  readonly "inference.circuit_closed": InferenceEventData;
  readonly "inference.usage_above_reservation": InferenceEventData & { readonly model: string };
  readonly "queue.active": QueueEventData;
  readonly "queue.failed": QueueEventData & { readonly error_message: string };
  readonly "queue.deleted": QueueEventData;
  readonly "export.failing": ExportFailureData;
  readonly "export.recovered": ExportEventData;
  readonly "export.disabled": ExportFailureData;
  readonly "project.deployed": ProjectEventData;
  readonly "project.failed": ProjectEventData;
  readonly "project.deleted": ProjectEventData;
  readonly "stack.running": StackEventData;
  readonly "stack.failed": StackEventData;
  readonly "stack.upgraded": StackEventData;
  readonly "pipeline.running": PipelineEventData;
  readonly "pipeline.degraded": PipelineEventData;
  readonly "alert.fired": AlertEventData & { readonly resolved_at: string | null };
  /** `reason` is "condition_false", or the change of the rule or service that ended the alert. */
  readonly "alert.resolved": AlertEventData & { readonly resolved_at: string; readonly reason: string };
  readonly "auth.enabled": AuthEventData;
  readonly "auth.disabled": AuthEventData;
  readonly "auth.failed": AuthEventData & { readonly failure_reason: string };
  readonly "auth.key_rotated": AuthEventData & { readonly emergency: boolean };
  readonly "auth.mail_failing": AuthEventData & { readonly reason: string };
  /** Either the user's id, or a keyed digest of the e-mail address in the request. */
  readonly "auth.user.deleted": { readonly user_id?: string; readonly email_digest?: string };
  readonly "webhook.test": { readonly webhook_id: string; readonly message: string };
  readonly "channel.confirmation_requested": { readonly channel_id: string };
  readonly "channel.test": { readonly channel_id: string; readonly message: string };
  readonly "webhook.disabled": {
    readonly webhook_id: string;
    readonly url: string;
    /** `gone` for a response of 410, or `failing`. */
    readonly reason: string;
    readonly failing_since: string;
  };
}

export type EventType = keyof EventData;

/**
 * An event of the organization, and the body of a webhook delivery. `event_type` determines the type of `data`. A newer
 * installation may send types that are not listed here: ignore unknown ones.
 */
export type PlatformEvent<T extends EventType = EventType> = {
  [K in T]: { readonly id: string; readonly event_type: K; readonly timestamp: string; readonly data: EventData[K] };
}[T];

export interface EventFilter<T extends EventType = EventType> {
  readonly type?: T | undefined;
  /** Time from which on events are listed, inclusive; RFC 3339. */
  readonly since?: string | undefined;
  /** True for the newest events as the first page, oldest first; `limit` is their number. */
  readonly newest?: boolean | undefined;
}

/** A filter of events; `service` is the id of a service. */
export interface OrganizationEventFilter<T extends EventType = EventType> extends EventFilter<T> {
  readonly service?: string | undefined;
}
