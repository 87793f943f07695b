import type { EventEntry, NewEvent } from "#kernel/store/outbox-entry.ts";

/** The event `channel.test`, which only the tested channel gets. */
export function channelTestEvent(organizationId: string, channelId: string): NewEvent {
  const message = "This is a test of your alert channel.";
  return {
    type: "channel.test",
    organizationId,
    objectKind: "channel",
    objectId: channelId,
    data: { channel_id: channelId, message },
  };
}

/** The event `channel.confirmation_requested`, which sends the confirmation link. */
export function confirmationEvent(organizationId: string, channelId: string): NewEvent {
  return {
    type: confirmationType,
    organizationId,
    objectKind: "channel",
    objectId: channelId,
    data: { channel_id: channelId },
  };
}

export const confirmationType = "channel.confirmation_requested";

/** Id of the channel that an event addresses; undefined for none. */
export function channelIdOf({
  type,
  objectId,
  data,
}: Pick<EventEntry, "type" | "objectId" | "data">): string | undefined {
  if (type === "channel.test" || type === confirmationType) return objectId;
  if (!type.startsWith("alert.")) return undefined;
  const id = data["notification_channel_id"];
  return typeof id === "string" ? id : undefined;
}

/** The payload for a channel: the alert without the channel's id. */
export function alertOf({ data }: Pick<EventEntry, "data">): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(data).filter(([name]) => name !== "notification_channel_id"));
}
