import type { NewEvent } from "#kernel/store/outbox-entry.ts";

export interface LogGap {
  readonly serviceId: string;
  readonly organizationId: string;
  /** The last moment before the gap, in milliseconds since 1970. */
  readonly since: number;
  /** The cause, and what to do. */
  readonly message: string;
}

/** The event of a gap in a service's log. */
export function gapEvent({ serviceId, organizationId, since, message }: LogGap): NewEvent {
  return {
    type: "backup.gap",
    organizationId,
    objectKind: "managed-service",
    objectId: serviceId,
    data: { service_id: serviceId, since: new Date(since).toISOString(), message },
  };
}
