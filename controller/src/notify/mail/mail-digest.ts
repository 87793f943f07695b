import type { Log } from "@holdfast/common/log.ts";
import type { MailDigests } from "./mail-digests.ts";
import type { Ownership } from "#kernel/runtime/ownership.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ChannelObject } from "../channel/channel.ts";
import { digestMail, digestLines } from "./alert-mail.ts";
import type { MailPace } from "./mail-pace.ts";
import type { Mailer } from "./mailer.ts";

/** Sends what had no room as mails of their own. */
export interface MailDigestLoop {
  close(): Promise<void>;
}

interface Deps {
  readonly mailer: Mailer;
  readonly pace: MailPace;
  readonly digests: MailDigests;
  readonly channels: Pick<Collection<ChannelObject>, "get" | "ready">;
  readonly ownership: Pick<Ownership, "begin">;
  readonly baseUrl: string;
  readonly log: Log;
}

const everyMs = 5_000;
/** The controller that delivers: it has the count of what an address was sent. */
const ownershipKey = "outbox";

export function startMailDigests(deps: Deps, intervalMs: number = everyMs): MailDigestLoop {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  async function round(): Promise<void> {
    await deps.channels.ready;
    const right = deps.ownership.begin(ownershipKey);
    if (right === undefined) return;
    try {
      await sendDigests(deps, stopping.signal);
    } catch (error) {
      if (!stopping.signal.aborted) deps.log.warn("digests wait", { error: String(error) });
    } finally {
      right.end();
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

/** One mail to each channel for which something waits and whose address may have one. What no server took waits on. */
export async function sendDigests(
  { mailer, pace, digests, channels, baseUrl }: Omit<Deps, "ownership" | "log">,
  signal: AbortSignal,
): Promise<void> {
  for (const channelId of await digests.channels()) {
    const channel = channels.get(channelId)?.object;
    if (channel?.spec.type !== "email" || channel.status.confirmedAt === null) {
      await digests.forget(channelId);
      continue;
    }
    const { address } = channel.spec;
    if (!pace.take(address)) continue;
    const { places, events } = await digests.waiting(channelId, digestLines);
    // A server that refuses one address takes mail of the others.
    await mailer.send({ to: address, ...digestMail(events, places.length, baseUrl) }, signal).then(
      () => digests.remove(places),
      () => signal.throwIfAborted(),
    );
  }
}
