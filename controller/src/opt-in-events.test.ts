import { expect, test } from "vitest";
import { matchesEvent, type WebhookObject } from "#notify/webhook/webhook.ts";
import { optInOf } from "#kernel/outbox/event-definition.ts";
import { eventTypes } from "./systems.ts";

const organizationId = "o";
const isOptIn = optInOf(eventTypes);

function webhook(events: readonly string[] | null): WebhookObject {
  return {
    metadata: { id: "w", name: "w", organizationId, generation: 1, createdAt: 0, updatedAt: 0 },
    spec: {
      url: "https://example.com",
      events,
      active: true,
      retryPolicy: "standard",
      sealedSecret: "",
      previous: null,
    },
    status: { disabledAt: null },
  };
}
const wants = (events: readonly string[] | null, type: string) =>
  matchesEvent(webhook(events), { organizationId, type, objectId: "s" }, isOptIn);

test.each(["queue.active", "queue.failed", "queue.deleted"])(
  "%s is delivered only to endpoints that name it",
  (type) => {
    expect(eventTypes.has(type)).toBe(true);
    expect(wants([type], type)).toBe(true);
    expect(wants(null, type)).toBe(false);
    expect(wants([], type)).toBe(false);
    expect(wants(["service.running"], type)).toBe(false);
    expect(matchesEvent(webhook([type]), { organizationId: "other", type, objectId: "s" }, isOptIn)).toBe(false);
  },
);
