import type { EventData } from "./event-data.ts";

export type { EventData };

/** Data of service events; events of some types have additional members. */
export type ServiceEventData = EventData["service.running"];

/** Data of events of hosted apps. */
export type AppEventData = Omit<EventData["app.failed"], "reason">;

/** Data of events of an app's deployments. */
export type AppDeploymentEventData = EventData["app.deployed"];

/** Data of maintenance events: service data, the updates and their operation. */
export type MaintenanceEventData = EventData["service.maintenance_started"];

/** Data of node events. */
export type NodeEventData = EventData["node.added"];

/** Data of backup events. */
export type BackupEventData = Omit<EventData["backup.completed"], "size_bytes">;

/** Data of events of an app's sign-in. */
export type AuthEventData = EventData["auth.enabled"];

/** Data of alert events. Channels receive the same without the channel's id. */
export type AlertEventData = Omit<EventData["alert.fired"], "resolved_at">;

/** Data of project events. */
export type ProjectEventData = EventData["project.deployed"];

/** Data of stack events. */
export type StackEventData = EventData["stack.running"];

/** Data of pipeline events. */
export type PipelineEventData = EventData["pipeline.running"];

/** Data of queue events. */
export type QueueEventData = EventData["queue.active"];

/** Data of events of an export integration. */
export type ExportEventData = EventData["export.recovered"];

/** Data of events of an organization's inference budget in a month. */
export type InferenceEventData = EventData["inference.budget_warning"];

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
