import type { WaitingDelivery } from "../webhook/deliveries.ts";
import type { MailDigests } from "./mail-digests.ts";
import type { ChannelConfirmations } from "../channel/channel-confirmation.ts";
import { confirmationType } from "../channel/channel-event.ts";
import { alertMail } from "./alert-mail.ts";
import { confirmationMail } from "./confirmation-mail.ts";
import type { MailPace } from "./mail-pace.ts";
import { type Mailer, MailFailure } from "./mailer.ts";

/** Tells the channels of type email. */
export interface MailSender {
  /** Null when the mail was taken, or waits for the next digest; otherwise why not. Throws only when the signal aborts. */
  tell(to: MailChannel, event: WaitingDelivery["event"], signal: AbortSignal): Promise<string | null>;
}

export interface MailChannel {
  readonly channelId: string;
  readonly address: string;
  readonly isConfirmed: boolean;
}

export function createMailSender(deps: {
  readonly mailer: Mailer | undefined;
  readonly pace: MailPace;
  readonly digests: Pick<MailDigests, "add">;
  readonly confirmations: Pick<ChannelConfirmations, "begin">;
  readonly baseUrl: string;
}): MailSender {
  const { mailer, pace, digests, confirmations, baseUrl } = deps;

  return {
    async tell({ channelId, address, isConfirmed }, event, signal) {
      if (mailer === undefined) return "This installation sends no mail.";
      try {
        if (event.type === confirmationType) {
          const url = await confirmations.begin(channelId, signal);
          if (url === undefined) return null;
          await mailer.send({ to: address, ...confirmationMail(url, { baseUrl, id: event.id }) }, signal);
        } else if (!isConfirmed) return "The address is not confirmed.";
        else if (pace.take(address)) await mailer.send({ to: address, ...alertMail(event, baseUrl) }, signal);
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
