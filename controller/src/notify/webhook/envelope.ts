/**
 * The body of a delivery (spec 2, Events). The bytes are the same in every attempt: members are sorted, because the
 * history does not preserve their order.
 */
export function envelopeOf(event: {
  readonly id: string;
  readonly type: string;
  readonly occurredAt: number;
  readonly data: Readonly<Record<string, unknown>>;
}): string {
  return JSON.stringify({
    id: event.id,
    event_type: event.type,
    timestamp: new Date(event.occurredAt).toISOString(),
    data: inOrder(event.data),
  });
}

/** JSON with sorted members: equal values have equal texts. */
export function stableText(value: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(inOrder(value));
}

/** The value with the members of each object in the order of their names. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}
