/** What one member of an event's data is. */
export interface DataField {
  readonly type: "string" | "number" | "boolean" | "uuid" | "time" | "string[]" | "object[]";
  readonly meaning: string;
  readonly optional?: true;
  /** It is always there, and may be null. */
  readonly nullable?: true;
}

export interface EventDefinition {
  /** Completes "It happens when ...". */
  readonly when: string;
  readonly data: Readonly<Record<string, DataField>>;
  readonly example: Readonly<Record<string, unknown>>;
  /** Filters may name the type already; this version emits no such event yet. */
  readonly planned?: true;
  /** Webhooks get it only when their filter names it. */
  readonly optIn?: true;
}

/** Answers whether webhooks get events of a type only when their filter names it. */
export function optInOf(eventTypes: ReadonlyMap<string, EventDefinition>): (type: string) => boolean {
  return (type) => eventTypes.get(type)?.optIn === true;
}
