import type { Claimed } from "./backend.ts";

/** The outcome of a message. */
export type Outcome = "acked" | "nacked" | "lost";

/** A message of a worker from its claim to its outcome. */
export interface InFlightMessage extends Claimed {
  /** `waiting` for a handler, `running` in one, `settling` while its outcome is written, `over` afterwards. */
  stage: "waiting" | "running" | "settling" | "over";
  /** End of the claim in milliseconds of performance.now(); until then no other worker gets the message. */
  claimedUntil: number;
  /** Created when the handler reads its signal. */
  abort: AbortController | undefined;
}

/** The messages that a worker has claimed, and the count of their outcomes. Each message has one outcome. */
export interface InFlightMessages {
  readonly size: number;
  readonly outcomes: Readonly<Record<Outcome, number>>;
  add(message: Claimed, claimedUntil: number): InFlightMessage;
  /** Records an outcome; does nothing if the message has one. */
  end(message: InFlightMessage, outcome: Outcome): void;
  messages(): InFlightMessage[];
}

export function createInFlightMessages(): InFlightMessages {
  const all = new Set<InFlightMessage>();
  const outcomes = { acked: 0, nacked: 0, lost: 0 };
  return {
    get size() {
      return all.size;
    },
    outcomes,
    add(message, claimedUntil) {
      const inFlight: InFlightMessage = { ...message, stage: "waiting", claimedUntil, abort: undefined };
      all.add(inFlight);
      return inFlight;
    },
    end(message, outcome) {
      if (!all.delete(message)) return;
      message.stage = "over";
      outcomes[outcome] += 1;
    },
    messages: () => [...all],
  };
}
