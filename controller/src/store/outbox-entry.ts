import { type Kind, root } from "./resource.ts";

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

/** What happened to an object, for whoever wants to hear of it. */
export interface NewEvent {
  readonly type: string;
  readonly organizationId: string;
  readonly objectKind: Kind;
  readonly objectId: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Who asked for a change, and what came of it. */
export interface NewAudit {
  readonly organizationId: string;
  readonly actor: string;
  readonly source: string;
  /** "managed-service.create". */
  readonly action: string;
  readonly objectKind: Kind;
  readonly objectId: string;
  readonly result: "ok" | "refused";
  readonly requestId: string;
}

export const outboxPrefix = `${root}/outbox/`;

/** Keys in the order of ids, which is that of time. */
export function outboxKeyOf(id: string): string {
  return `${outboxPrefix}${id}`;
}
