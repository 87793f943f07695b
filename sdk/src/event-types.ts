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

/** What an event of maintenance tells besides: which updates, by which operation. */
export type MaintenanceEventData = ServiceEventData & {
  readonly operation_id: string;
  readonly update_ids: readonly string[];
  /** It began by itself, in the window or at the end of a notice. */
  readonly automatic: boolean;
};

/** What an event of a backup tells of it. */
export type BackupEventData = {
  readonly service_id: string;
  readonly backup_id: string;
  readonly backup_type: string;
  readonly duration_seconds: number;
};

/** What an event of an alert tells of it. */
export type AlertEventData = {
  readonly service_id: string;
  readonly alert_name: string;
  readonly metric: string;
  readonly threshold: number;
  readonly current_value: number;
};

/** The data of each type of event. */
export interface EventData {
  readonly "service.running": ServiceEventData;
  readonly "service.error": ServiceEventData;
  readonly "service.stopped": ServiceEventData;
  readonly "service.deleted": ServiceEventData;
  readonly "service.expiring": ServiceEventData & { readonly expires_at: string; readonly hours_left: number };
  readonly "service.expiry_held": ServiceEventData & { readonly reason: string };
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
   * `taken_back`: the service runs as before; else it is in Error. `data_restored`: the data went back to the snapshot from
   * before the update; else they stayed as they were.
   */
  readonly "service.maintenance_failed": MaintenanceEventData & {
    readonly error_message: string;
    readonly taken_back: boolean;
    readonly data_restored: boolean;
  };
  readonly "backup.completed": BackupEventData & { readonly size_bytes: number };
  readonly "backup.failed": BackupEventData & { readonly error_message: string };
  readonly "alert.fired": AlertEventData;
  readonly "alert.resolved": AlertEventData & { readonly fired_at: string; readonly resolved_at: string };
  /** One of them: the user's id, or a keyed digest of the address that the request named. */
  readonly "auth.user.deleted": { readonly user_id?: string; readonly email_digest?: string };
  readonly "webhook.test": { readonly webhook_id: string; readonly message: string };
  readonly "webhook.disabled": { readonly webhook_id: string; readonly url: string; readonly failing_since: string };
}

export type EventType = keyof EventData;

/**
 * What happened to an object of the organization; also the body of a webhook's delivery. `event_type` tells what `data` is. A newer
 * installation has types that are not here: pass over what you do not know.
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
