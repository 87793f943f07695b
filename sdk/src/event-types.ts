/** What events tell. Times are RFC 3339 texts in UTC. */

/** What an event of a service tells of it. */
export type ServiceEventData = {
  readonly service_id: string;
  /** Its name then. */
  readonly service_name: string;
  readonly database_type: string;
  /** Its status then. */
  readonly status: string;
  /** While the service has an error. */
  readonly error_message?: string;
};

/** Data of a maintenance event besides those of its service: the updates and their operation. */
export type MaintenanceEventData = ServiceEventData & {
  readonly operation_id: string;
  readonly update_ids: readonly string[];
  /** It began by itself, in the window or at the end of a notice. */
  readonly automatic: boolean;
};

/** What an event of an app's sign-in tells of it. */
export type AuthEventData = {
  readonly app_id: string;
  readonly auth_id: string;
  /** Its status then. */
  readonly status: string;
};

/** What an event of a backup tells of it. */
export type BackupEventData = {
  readonly service_id: string;
  readonly backup_id: string;
  readonly backup_type: string;
  readonly duration_seconds: number;
};

/** Data of an alert's event; a channel receives the same, without the channel's own id. */
export type AlertEventData = {
  /** Of the alert: the same when it is resolved. */
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
  /** null without data. */
  readonly current_value: number | null;
  readonly severity: string;
  /** "firing", "no_data" or "resolved". */
  readonly state: string;
  readonly since: string;
  readonly fired_at: string;
  readonly notification_channel_id: string | null;
};

/** What an event of a project tells of it. */
export type ProjectEventData = CompositionEventData & { readonly project_id: string };

/** What an event of a stack tells of it. */
export type StackEventData = CompositionEventData & { readonly stack_id: string };

/** What an event of a pipeline tells of it. */
export type PipelineEventData = CompositionEventData & { readonly pipeline_id: string };

type CompositionEventData = {
  readonly name: string;
  /** What is wrong with it. */
  readonly detail?: string;
};

/** What an event of a node tells of it. */
export type NodeEventData = ServiceEventData & {
  readonly node_id: string;
  readonly role: string;
  readonly hostname: string;
  readonly zone: string;
};

/** What an event of a queue tells of it. */
export type QueueEventData = {
  readonly service_id: string;
  readonly queue_id: string;
  readonly queue_name: string;
  readonly database_name: string;
  /** Its status then. */
  readonly status: string;
};

/** What an event of an export tells of its integration. */
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

/** What an event of an organization's inference tells of the month. */
export type InferenceEventData = {
  /** Month in UTC, such as 2026-11. */
  readonly period: string;
  readonly spent_cents: number;
  readonly monthly_cost_limit_cents: number;
};

type StorageEventData = {
  readonly used_pct: number;
  readonly storage_size_gb: number;
  /** Whose disk it is. */
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
    /** The moment that was asked for, where one was. */
    readonly restore_point?: string;
  };
  /** `seconds`: from its beginning until the new primary took a write. */
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
    readonly from_node_id: string;
    readonly to_node_id: string;
  };
  /** `kept_bytes` of the `discarded_bytes` of log behind the position `discarded_from` are kept on its machine. */
  readonly "node.rewound": NodeEventData & {
    readonly discarded_from: string;
    readonly discarded_bytes: number;
    readonly kept_bytes: number;
  };
  /** `missing`: host names of the replicas that are not connected. */
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
  /** Only endpoints whose filter names the type get it. */
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
   * `rolled_back`: the service runs as before; else it is in Error. `data_restored`: the data went back to the snapshot
   * from before the update; else they stayed as they were.
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
  readonly "backup.gap": { readonly service_id: string; readonly since: string };
  readonly "inference.budget_warning": InferenceEventData;
  readonly "inference.circuit_opened": InferenceEventData;
  readonly "inference.circuit_closed": InferenceEventData;
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
  /** `reason`: "condition_false", or the change of the rule or its service that ended the alert. */
  readonly "alert.resolved": AlertEventData & { readonly resolved_at: string; readonly reason: string };
  readonly "auth.enabled": AuthEventData;
  readonly "auth.disabled": AuthEventData;
  readonly "auth.failed": AuthEventData & { readonly failure_reason: string };
  readonly "auth.key_rotated": AuthEventData & { readonly emergency: boolean };
  readonly "auth.mail_failing": AuthEventData & { readonly reason: string };
  /** One of them: the user's id, or a keyed digest of the address that the request named. */
  readonly "auth.user.deleted": { readonly user_id?: string; readonly email_digest?: string };
  readonly "webhook.test": { readonly webhook_id: string; readonly message: string };
  readonly "channel.confirmation_requested": { readonly channel_id: string };
  readonly "channel.test": { readonly channel_id: string; readonly message: string };
  readonly "webhook.disabled": { readonly webhook_id: string; readonly url: string; readonly failing_since: string };
}

export type EventType = keyof EventData;

/**
 * A change of an object of the organization; also the body of a webhook's delivery. `event_type` determines the type of
 * `data`. A newer installation may send types that are not listed here: ignore unknown ones.
 */
export type PlatformEvent<T extends EventType = EventType> = {
  [K in T]: { readonly id: string; readonly event_type: K; readonly timestamp: string; readonly data: EventData[K] };
}[T];

export interface EventFilter<T extends EventType = EventType> {
  readonly type?: T | undefined;
  /** The list begins here, inclusive. */
  readonly since?: string | undefined;
}

/** Of one service when `service` is its id. */
export interface OrganizationEventFilter<T extends EventType = EventType> extends EventFilter<T> {
  readonly service?: string | undefined;
}
