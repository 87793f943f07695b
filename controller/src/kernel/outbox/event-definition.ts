/** Documentation of one member of an event's data. */
export interface DataField {
  readonly type: "string" | "number" | "boolean" | "uuid" | "time" | "string[]" | "object[]";
  readonly meaning: string;
  readonly optional?: true;
  /** Always present, and may be null. */
  readonly nullable?: true;
}

export interface EventDefinition {
  /** Completes "Emitted when ...", without a period. */
  readonly when: string;
  readonly data: Readonly<Record<string, DataField>>;
  readonly example: Readonly<Record<string, unknown>>;
  /** True: filters may already name the type, but this version does not emit it. */
  readonly planned?: true;
  /** True: webhooks get the event only if their filter names its type. */
  readonly optIn?: true;
}

/** Returns a predicate that is true for event types that webhooks get only if their filter names them. */
export function optInOf(eventTypes: ReadonlyMap<string, EventDefinition>): (type: string) => boolean {
  return (type) => eventTypes.get(type)?.optIn === true;
}
