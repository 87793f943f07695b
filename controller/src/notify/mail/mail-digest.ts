import type { Log } from "@holdfast/common/log.ts";
import type { MailDigestQueue } from "./mail-digest-queue.ts";
import type { Ownership } from "#kernel/runtime/ownership.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ChannelObject } from "../channel/channel.ts";
import { digestMail, digestLines } from "./mail-messages.ts";
import type { MailRateLimit } from "./mail-sender.ts";
import type { Mailer } from "./mailer.ts";

/** The loop that sends digests: mails for the alerts that exceeded the rate limit of an address. */
export interface MailDigestLoop {
  close(): Promise<void>;
}

interface Deps {
  readonly mailer: Mailer;
  readonly rateLimit: MailRateLimit;
  readonly digests: MailDigestQueue;
  readonly channels: Pick<Collection<ChannelObject>, "get" | "ready">;
  readonly ownership: Pick<Ownership, "begin">;
  readonly baseUrl: string;
  readonly log: Log;
}

const defaultIntervalMs = 5_000;
/** The owner of the outbox sends digests, because it also sends single mails and has their rate limits in memory. */
const ownershipKey = "outbox";

export function startMailDigests(deps: Deps, intervalMs: number = defaultIntervalMs): MailDigestLoop {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  async function round(): Promise<void> {
    await deps.channels.ready;
    const workLease = deps.ownership.begin(ownershipKey);
    if (workLease === undefined) return;
    try {
      await sendDigests(deps, stopping.signal);
    } catch (error) {
      if (!stopping.signal.aborted) deps.log.warn("digests not sent", { error: String(error) });
    } finally {
      workLease.end();
    }
  }

  const timer = setInterval(() => {
    running ??= round().finally(() => {
      running = undefined;
    });
  }, intervalMs);
  timer.unref();
  return {
    async close() {
      clearInterval(timer);
      stopping.abort(new Error("the controller stops"));
      await running;
    },
  };
}

/**
 * Sends one digest to each channel with queued events whose address is within its rate limit. A digest that the server
 * does not accept remains queued.
 */
export async function sendDigests(
  { mailer, rateLimit, digests, channels, baseUrl }: Omit<Deps, "ownership" | "log">,
  signal: AbortSignal,
): Promise<void> {
  for (const channelId of await digests.channels()) {
    const channel = channels.get(channelId)?.object;
    if (channel?.spec.type !== "email" || channel.status.confirmedAt === null) {
      await digests.forget(channelId);
      continue;
    }
    const { address } = channel.spec;
    if (!rateLimit.take(address)) continue;
    const { positions, events } = await digests.waiting(channelId, digestLines);
    // A refusal concerns one address: the other channels are still served.
    await mailer.send({ to: address, ...digestMail(events, positions.length, baseUrl) }, signal).then(
      () => digests.remove(positions),
      () => signal.throwIfAborted(),
    );
  }
}
