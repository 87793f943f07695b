import { root } from "./resource.ts";

/** An entry that waits in the store for the history. Id and time are those of the change it was written with. */
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

/** A change of an object, for webhooks, event streams and other listeners. */
export interface NewEvent {
  readonly type: string;
  readonly organizationId: string;
  /** Name of the object's kind. */
  readonly objectKind: string;
  readonly objectId: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The caller of a change, and its outcome. */
export interface NewAudit {
  readonly organizationId: string;
  readonly actor: string;
  readonly source: string;
  /** "managed-service.create". */
  readonly action: string;
  /** Name of the object's kind. */
  readonly objectKind: string;
  readonly objectId: string;
  readonly result: "ok" | "refused";
  readonly requestId: string;
  /** Further subject of the call beside the object, without anything secret. */
  readonly detail?: string;
}

export const outboxPrefix = `${root}/outbox/`;

/** Keys in the order of ids, which is that of time. */
export function outboxKeyOf(id: string): string {
  return `${outboxPrefix}${id}`;
}
