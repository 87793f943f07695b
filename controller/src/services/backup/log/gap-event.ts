import type { NewEvent } from "#kernel/store/outbox-entry.ts";

export interface LogGap {
  readonly serviceId: string;
  readonly organizationId: string;
  /** The last time before the gap that can be restored, in milliseconds since 1970. */
  readonly since: number;
  /** Cause of the gap and advice, for users. */
  readonly message: string;
}

/** The `backup.gap` event of a service's log. */
export function gapEvent({ serviceId, organizationId, since, message }: LogGap): NewEvent {
  return {
    type: "backup.gap",
    organizationId,
    objectKind: "managed-service",
    objectId: serviceId,
    data: { service_id: serviceId, since: new Date(since).toISOString(), message },
  };
}
