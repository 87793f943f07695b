/** The body of a delivery (spec 2, Events): the same bytes in every attempt. */
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
    data: event.data,
  });
}
