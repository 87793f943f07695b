import type { NewDelivery, WaitingDelivery } from "./deliveries.ts";
import type { EventEntry } from "#kernel/store/outbox-entry.ts";

/** Pure: the deliveries that events mean for those that get them, as they will wait when they are stored. */
export function planDeliveries(
  events: readonly EventEntry[],
  wanting: (event: EventEntry) => readonly string[],
  { dueAt, newId }: { readonly dueAt: number; readonly newId: () => string },
): WaitingDelivery[] {
  return events.flatMap((event) =>
    wanting(event).map((webhookId) => ({ id: newId(), webhookId, attempt: 1, dueAt, event })),
  );
}

/** As it comes into the history with its event. */
export function newDelivery({ id, webhookId, dueAt, event }: WaitingDelivery): NewDelivery {
  return { id, webhookId, dueAt, eventId: event.id };
}
