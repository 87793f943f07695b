import type { ClientResponse } from "../http/client-response.ts";

/** Calls whose client disconnected, and whose responses are still read for their usage. */
export interface AbandonedCalls {
  begin(client: Pick<ClientResponse, "isClosed" | "onClosed">): { readonly signal: AbortSignal; end(): void };
  readonly count: number;
}

const timeoutMs = 60_000;
const maxAbandoned = 512;

/**
 * Creates the limit of abandoned calls: a response is read for up to a minute after its client disconnected. Above 512
 * abandoned calls, a call is aborted as soon as its client disconnects.
 */
export function createAbandonedCalls(): AbandonedCalls {
  let count = 0;
  return {
    begin(client) {
      let hasEnded = false;
      const stopped = new AbortController();
      let timer: NodeJS.Timeout | undefined;
      const onClosed = () => {
        if (hasEnded) return;
        if (count >= maxAbandoned)
          return stopped.abort(new Error("too many responses are read for disconnected clients"));
        count += 1;
        timer = setTimeout(
          () => stopped.abort(new Error("the client disconnected and the response took too long")),
          timeoutMs,
        );
      };
      if (client.isClosed) onClosed();
      else client.onClosed(onClosed);
      return {
        signal: stopped.signal,
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
