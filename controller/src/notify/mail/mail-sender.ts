import type { Clock } from "@holdfast/common/clock.ts";
import type { ChannelConfirmations } from "../channel/channel-confirmation.ts";
import { confirmationType } from "../channel/channel-event.ts";
import type { WaitingDelivery } from "../webhook/deliveries.ts";
import type { MailDigestQueue } from "./mail-digest-queue.ts";
import { alertMail, confirmationMail } from "./mail-messages.ts";
import { type Mailer, MailFailure } from "./mailer.ts";

/** Sends the events of channels of type email. */
export interface MailSender {
  /**
   * Resolves to null if the mail was accepted or queued for the next digest, otherwise to the error message. Throws
   * only if the signal aborts.
   */
  send(to: MailChannel, event: WaitingDelivery["event"], signal: AbortSignal): Promise<string | null>;
}

export interface MailChannel {
  readonly channelId: string;
  readonly address: string;
  readonly isConfirmed: boolean;
}

export function createMailSender(deps: {
  readonly mailer: Mailer | undefined;
  readonly rateLimit: MailRateLimit;
  readonly digests: Pick<MailDigestQueue, "add">;
  readonly confirmations: Pick<ChannelConfirmations, "begin">;
  readonly baseUrl: string;
}): MailSender {
  const { mailer, rateLimit, digests, confirmations, baseUrl } = deps;

  return {
    async send({ channelId, address, isConfirmed }, event, signal) {
      if (mailer === undefined) return "This installation has no mail server.";
      try {
        if (event.type === confirmationType) {
          const url = await confirmations.begin(channelId, signal);
          if (url === undefined) return null;
          await mailer.send({ to: address, ...confirmationMail(url, { baseUrl, id: event.id }) }, signal);
        } else if (!isConfirmed) return "The address is not confirmed.";
        else if (rateLimit.take(address)) await mailer.send({ to: address, ...alertMail(event, baseUrl) }, signal);
        else await digests.add(channelId, event);
        return null;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof MailFailure) return error.message;
        throw error;
      }
    },
  };
}

/** Limits how many single mails an address gets in a minute. */
export interface MailRateLimit {
  /** Counts a mail; false if 20 mails were sent to the address in the last minute. */
  take(address: string): boolean;
}

const windowMs = 60_000;
const mailsMax = 20;
/** Above this number, addresses without a mail in the last minute are dropped. */
const addressesMax = 1_000;

/** The limit of one controller, in its memory; after a takeover of the outbox the next owner counts from zero. */
export function createMailRateLimit(clock: Pick<Clock, "monotonicMs">): MailRateLimit {
  const sent = new Map<string, number[]>();
  return {
    take(address) {
      const now = clock.monotonicMs();
      const isRecent = (at: number) => at > now - windowMs;
      if (sent.size > addressesMax) for (const [each, times] of sent) if (!times.some(isRecent)) sent.delete(each);
      const key = address.toLowerCase();
      const recent = (sent.get(key) ?? []).filter(isRecent);
      const isFree = recent.length < mailsMax;
      sent.set(key, isFree ? [...recent, now] : recent);
      return isFree;
    },
  };
}
