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

/** The data of each type of event. */
export interface EventData {
  readonly "service.running": ServiceEventData;
  readonly "service.error": ServiceEventData;
  readonly "service.stopped": ServiceEventData;
  readonly "service.deleted": ServiceEventData;
  readonly "service.expiring": ServiceEventData & { readonly expires_at: string; readonly hours_left: number };
  readonly "service.expiry_held": ServiceEventData & { readonly reason: string };
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
