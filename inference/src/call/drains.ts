import type { ClientAnswer } from "../http/client-answer.ts";

/** Calls whose clients left, and whose answers are still read for what they cost. */
export interface Drains {
  begin(client: Pick<ClientAnswer, "isGone" | "onGone">): { readonly signal: AbortSignal; end(): void };
  readonly count: number;
}

const drainMs = 60_000;
const drainsMax = 512;

/** An answer is read for so long after its client left; of too many at once the newest are given up at once. */
export function createDrains(): Drains {
  let count = 0;
  return {
    begin(client) {
      let hasEnded = false;
      const over = new AbortController();
      let timer: NodeJS.Timeout | undefined;
      const gone = () => {
        if (hasEnded) return;
        if (count >= drainsMax) return over.abort(new Error("too many answers are read for clients that left"));
        count += 1;
        timer = setTimeout(() => over.abort(new Error("the client left, and the answer took too long")), drainMs);
      };
      if (client.isGone) gone();
      else client.onGone(gone);
      return {
        signal: over.signal,
        end() {
          hasEnded = true;
          if (timer === undefined) return;
          clearTimeout(timer);
          timer = undefined;
          count -= 1;
        },
      };
    },
    get count() {
      return count;
    },
  };
}
