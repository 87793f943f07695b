import { root } from "../store/resource.ts";
import type { NewAudit, NewEvent } from "../store/unit-of-work.ts";

/** What waits in the store until history has it. Id and time are those of the change it was written with. */
export type OutboxEntry = EventEntry | AuditEntry;

export interface EventEntry extends NewEvent {
  readonly entry: "event";
  readonly id: string;
  readonly occurredAt: number;
}

export interface AuditEntry extends NewAudit {
  readonly entry: "audit";
  readonly id: string;
  readonly occurredAt: number;
}

export const outboxPrefix = `${root}/outbox/`;

export function outboxKeyOf(id: string): string {
  return `${outboxPrefix}${id}`;
}
