import { pause } from "../retry.ts";
import type { Backend, NackRequest } from "./backend.ts";
import type { InFlightMessages, InFlightMessage, Outcome } from "./in-flight.ts";

/** Writes outcomes to the queue. A message is `over` when its outcome is written or its claim has expired. */
export interface Settling {
  /** Acks with the next claim, or after 50 ms without one. */
  ack(message: InFlightMessage): void;
  /** A text that the queue refuses is left out of the next attempt. */
  nack(message: InFlightMessage, request: NackRequest): void;
  release(messages: readonly InFlightMessage[]): void;
  /** Takes the pending acks to send them with a claim; the caller ends them or passes them to `requeueAcks`. */
  takeAcks(): InFlightMessage[];
  requeueAcks(acks: readonly InFlightMessage[]): void;
  /** Sends everything and resolves when it is written. */
  drained(): Promise<void>;
}

const maxAckDelayMs = 50;
const minRetryDelayMs = 100;
const maxRetryDelayMs = 2000;

/** `onError` receives errors that are retried; `fail` receives an error of `onError` itself. */
export function createSettling(
  backend: Backend,
  inFlight: InFlightMessages,
  { onError, fail }: { readonly onError: (error: unknown) => void; readonly fail: (error: unknown) => void },
): Settling {
  let acks: InFlightMessage[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const sending = new Set<Promise<void>>();

  function start(
    messages: readonly InFlightMessage[],
    outcome: Outcome,
    send: () => Promise<ReadonlySet<string>>,
  ): void {
    if (messages.length === 0) return;
    for (const message of messages) message.stage = "settling";
    const sent = untilSent(messages, outcome, send)
      .catch((error: unknown) => {
        for (const message of messages) inFlight.end(message, "lost");
        fail(error);
      })
      .finally(() => sending.delete(sent));
    sending.add(sent);
  }

  async function untilSent(
    messages: readonly InFlightMessage[],
    outcome: Outcome,
    send: () => Promise<ReadonlySet<string>>,
  ): Promise<void> {
    const latest = Math.max(...messages.map(({ claimedUntil }) => claimedUntil));
    for (let delayMs = minRetryDelayMs; ; delayMs = Math.min(delayMs * 2, maxRetryDelayMs)) {
      try {
        const lost = await send();
        for (const message of messages) inFlight.end(message, lost.has(message.id) ? "lost" : outcome);
        return;
      } catch (error) {
        onError(error);
        if (backend.isPermanent(error) || performance.now() > latest) break;
        await pause(delayMs);
      }
    }
    for (const message of messages) inFlight.end(message, "lost");
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const messages = acks;
    acks = [];
    start(messages, "acked", () => backend.ack(messages));
  }

  async function nack(message: InFlightMessage, request: NackRequest): Promise<ReadonlySet<string>> {
    try {
      return await backend.nack(message, request);
    } catch (error) {
      if (request.error === undefined || !backend.isInvalid(error)) throw error;
      onError(error);
      const { error: _, ...withoutText } = request;
      return backend.nack(message, withoutText);
    }
  }

  const scheduleAcks = () => {
    timer ??= setTimeout(flush, maxAckDelayMs);
  };

  return {
    ack(message) {
      message.stage = "settling";
      acks.push(message);
      scheduleAcks();
    },
    nack: (message, request) => start([message], "nacked", () => nack(message, request)),
    release: (messages) => start(messages, "nacked", () => backend.release(messages)),
    takeAcks() {
      const messages = acks;
      acks = [];
      return messages;
    },
    requeueAcks(messages) {
      acks.push(...messages);
      scheduleAcks();
    },
    async drained() {
      flush();
      while (sending.size > 0) await Promise.all(sending);
    },
  };
}
