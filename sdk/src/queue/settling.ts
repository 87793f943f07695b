import { pause } from "../retry.ts";
import type { Backend } from "./backend.ts";
import type { Hand, InHand, Outcome } from "./hand.ts";

/** Brings outcomes to the queue; each message is over when that is known, or when its claim has run out. */
export interface Settling {
  /** Sent with the next claim, or soon without one. */
  ack(message: InHand): void;
  nack(
    message: InHand,
    request: { readonly delaySeconds: number; readonly error: string; readonly discard: boolean },
  ): void;
  release(messages: readonly InHand[]): void;
  /** Acks that a claim takes along; they are its to end or to give back. */
  takeAcks(): InHand[];
  giveBack(acks: readonly InHand[]): void;
  /** Resolves when nothing is left to send. */
  drained(): Promise<void>;
}

const soonMs = 50;
const firstPauseMs = 100;
const longestPauseMs = 2000;

/** `onError` gets what is tried again, `fail` an error of `onError` itself. */
export function createSettling(
  backend: Backend,
  hand: Hand,
  { onError, fail }: { readonly onError: (error: unknown) => void; readonly fail: (error: unknown) => void },
): Settling {
  let acks: InHand[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const sending = new Set<Promise<void>>();

  function start(messages: readonly InHand[], outcome: Outcome, send: () => Promise<ReadonlySet<string>>): void {
    if (messages.length === 0) return;
    for (const message of messages) message.stage = "settling";
    const sent = untilSent(messages, outcome, send)
      .catch((error: unknown) => {
        for (const message of messages) hand.end(message, "lost");
        fail(error);
      })
      .finally(() => sending.delete(sent));
    sending.add(sent);
  }

  async function untilSent(
    messages: readonly InHand[],
    outcome: Outcome,
    send: () => Promise<ReadonlySet<string>>,
  ): Promise<void> {
    const latest = Math.max(...messages.map(({ keptUntil }) => keptUntil));
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        const lost = await send();
        for (const message of messages) hand.end(message, lost.has(message.id) ? "lost" : outcome);
        return;
      } catch (error) {
        onError(error);
        if (backend.isFinal(error) || performance.now() > latest) break;
        await pause(pauseMs);
      }
    }
    for (const message of messages) hand.end(message, "lost");
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const messages = acks;
    acks = [];
    start(messages, "acked", () => backend.ack(messages));
  }

  const ackSoon = () => {
    timer ??= setTimeout(flush, soonMs);
  };

  return {
    ack(message) {
      message.stage = "settling";
      acks.push(message);
      ackSoon();
    },
    nack: (message, request) => start([message], "nacked", () => backend.nack(message, request)),
    release: (messages) => start(messages, "nacked", () => backend.release(messages)),
    takeAcks() {
      const messages = acks;
      acks = [];
      return messages;
    },
    giveBack(messages) {
      acks.push(...messages);
      ackSoon();
    },
    async drained() {
      flush();
      while (sending.size > 0) await Promise.all(sending);
    },
  };
}
