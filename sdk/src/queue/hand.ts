import type { Claimed } from "./backend.ts";

/** What became of a message, in the end. */
export type Outcome = "acked" | "nacked" | "lost";

/** A message in a worker's hands, from its claim to its outcome. */
export interface InHand extends Claimed {
  /** `waiting` for a handler, `running` in one, `settling`: its outcome is being written. */
  stage: "waiting" | "running" | "settling" | "over";
  /** End of the claim, by this machine's clock: until then no other worker gets the message. */
  keptUntil: number;
  /** Made when the handler asks for its signal. */
  abort: AbortController | undefined;
}

/** Messages of a worker, and a tally of the outcomes: each message has one. */
export interface Hand {
  readonly size: number;
  readonly tally: Readonly<Record<Outcome, number>>;
  take(message: Claimed, keptUntil: number): InHand;
  /** Does nothing to a message that has its outcome. */
  end(message: InHand, outcome: Outcome): void;
  held(): InHand[];
}

export function createHand(): Hand {
  const all = new Set<InHand>();
  const tally = { acked: 0, nacked: 0, lost: 0 };
  return {
    get size() {
      return all.size;
    },
    tally,
    take(message, keptUntil) {
      const inHand: InHand = { ...message, stage: "waiting", keptUntil, abort: undefined };
      all.add(inHand);
      return inHand;
    },
    end(message, outcome) {
      if (!all.delete(message)) return;
      message.stage = "over";
      tally[outcome] += 1;
    },
    held: () => [...all],
  };
}
