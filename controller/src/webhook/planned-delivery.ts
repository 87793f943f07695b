import type { NewDelivery, WaitingDelivery } from "../history/deliveries.ts";
import type { EventEntry } from "../store/outbox-entry.ts";
import { type WebhookObject, wantsEvent } from "./webhook.ts";

/** Pure: the deliveries that events mean for the endpoints of their organizations, as they will wait when they are stored. */
export function planDeliveries(
  events: readonly EventEntry[],
  webhooksOf: (organizationId: string) => readonly WebhookObject[],
  { dueAt, newId }: { readonly dueAt: number; readonly newId: () => string },
): WaitingDelivery[] {
  return events.flatMap((event) =>
    webhooksOf(event.organizationId)
      .filter((webhook) => wantsEvent(webhook, event))
      .map(({ metadata }) => ({ id: newId(), webhookId: metadata.id, attempt: 1, dueAt, event })),
  );
}

/** As it comes into the history with its event. */
export function newDelivery({ id, webhookId, dueAt, event }: WaitingDelivery): NewDelivery {
  return { id, webhookId, dueAt, eventId: event.id };
}
