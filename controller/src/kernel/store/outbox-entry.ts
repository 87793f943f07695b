import { root } from "./resource.ts";

/** An entry that waits in etcd for the history. Its id and time were assigned by the change that wrote it. */
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

/** A change of an object, for webhooks, event streams and other consumers. */
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
  /** Kind and verb, such as "managed-service.create". */
  readonly action: string;
  /** Name of the object's kind. */
  readonly objectKind: string;
  readonly objectId: string;
  readonly result: "ok" | "refused";
  readonly requestId: string;
  /** Detail of the call besides the object, such as the statement that the console ran; never a secret. */
  readonly detail?: string;
}

export const outboxPrefix = `${root}/outbox/`;

/** The etcd key of an entry. Ids are UUIDv7, so keys sort by time. */
export function outboxKeyOf(id: string): string {
  return `${outboxPrefix}${id}`;
}
