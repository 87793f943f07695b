import type { Clock } from "@holdfast/common/clock.ts";

/** How many mails an address gets one by one. */
export interface MailPace {
  /** False when the address had its 20 of the last minute. */
  take(address: string): boolean;
}

const windowMs = 60_000;
const mailsMax = 20;
/** Past so many addresses those that had no mail for a minute are forgotten. */
const addressesMax = 1_000;

/** In memory, of one controller: whoever takes over counts anew. */
export function createMailPace(clock: Pick<Clock, "monotonicMs">): MailPace {
  const sent = new Map<string, number[]>();
  return {
    take(address) {
      const now = clock.monotonicMs();
      const isRecent = (at: number) => at > now - windowMs;
      if (sent.size > addressesMax) for (const [known, times] of sent) if (!times.some(isRecent)) sent.delete(known);
      const key = address.toLowerCase();
      const recent = (sent.get(key) ?? []).filter(isRecent);
      const isFree = recent.length < mailsMax;
      sent.set(key, isFree ? [...recent, now] : recent);
      return isFree;
    },
  };
}
