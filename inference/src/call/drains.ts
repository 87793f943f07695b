/** Calls whose clients left, and whose answers are still read for what they cost. */
export interface Drains {
  begin(clientGone: AbortSignal): { readonly signal: AbortSignal; end(): void };
  readonly count: number;
}

const drainMs = 60_000;
const drainsMax = 512;

/** An answer is read for so long after its client left; of too many at once the newest are given up at once. */
export function createDrains(): Drains {
  let count = 0;
  return {
    begin(clientGone) {
      const over = new AbortController();
      let timer: NodeJS.Timeout | undefined;
      const gone = () => {
        if (count >= drainsMax) return over.abort(new Error("too many answers are read for clients that left"));
        count += 1;
        timer = setTimeout(() => over.abort(new Error("the client left, and the answer took too long")), drainMs);
      };
      if (clientGone.aborted) gone();
      else clientGone.addEventListener("abort", gone, { once: true });
      return {
        signal: over.signal,
        end() {
          clientGone.removeEventListener("abort", gone);
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
