import type { Clock } from "@holdfast/common/clock.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Receiver, Receivers } from "../webhook/receiver.ts";
import { sendSigned, stableText } from "../webhook/send-signed.ts";
import type { MailSender } from "../mail/mail-sender.ts";
import { type ChannelObject, createChannelKeys } from "./channel.ts";
import { alertOf, channelIdOf, confirmationType } from "./channel-event.ts";

interface Deps {
  readonly channels: Collection<ChannelObject>;
  readonly egress: Pick<EgressClient, "post">;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly mail: MailSender;
}

/** Alert channels as receivers of events: a channel gets the events that name it. */
export function createChannelReceivers({ channels, egress, sealer, clock, mail }: Deps): Receivers {
  const keyFor = createChannelKeys(sealer);

  function senderOf({ metadata: { id, organizationId }, spec, status }: ChannelObject): Receiver["send"] {
    const isConfirmed = status.confirmedAt !== null;
    if (spec.type === "webhook")
      return (event, signal) => {
        const secrets = { current: keyFor(id, spec) };
        const message = { id: event.id, body: stableText(alertOf(event)), sentAt: clock.now(), secrets };
        return sendSigned(spec.url, message, { egress, organizationId, signal });
      };
    return async (event, signal) => {
      const errorMessage = await mail.send({ channelId: id, address: spec.address, isConfirmed }, event, signal);
      return { responseStatus: null, errorMessage };
    };
  }

  return {
    get(id) {
      const channel = channels.get(id)?.object;
      if (channel === undefined) return undefined;
      const { organizationId } = channel.metadata;
      return { id, organizationId, isActive: true, retryPolicy: "extended", send: senderOf(channel) };
    },
    ids: () => Iterator.from(channels.values()).map(({ object }) => object.metadata.id),
    subscribersOf(event) {
      const id = channelIdOf(event);
      const channel = id === undefined ? undefined : channels.get(id)?.object;
      if (channel === undefined || channel.metadata.organizationId !== event.organizationId) return [];
      // An unconfirmed address gets only its confirmation link.
      const isWaiting = channel.spec.type === "email" && channel.status.confirmedAt === null;
      return isWaiting === (event.type === confirmationType) ? [channel.metadata.id] : [];
    },
    subscribe: (onChange) => channels.subscribe(onChange),
    untilRevision: (revision, timeoutMs) => channels.untilRevision(revision, timeoutMs),
    ready: channels.ready,
    // A failing channel is not disabled, because its next alert may be important.
    failing: async () => undefined,
  };
}
