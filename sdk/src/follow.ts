import { ConnectionFailed, errorOf, type Problem } from "./errors.ts";
import { pause, pauseBeforeRetry, usualRetries } from "./retry.ts";
import { readServerEvents } from "./server-events.ts";
import type { CallOptions, RequestOptions, Transport } from "./transport.ts";

/** A sign of life comes every 15 s; without one for this long the connection is dead. */
const silenceMs = 50_000;

/**
 * Entries of a list as they come, until the signal aborts, which ends the iteration by the signal's reason. A connection
 * that breaks is opened again where it was: each entry comes once.
 */
export async function* follow<T>(
  transport: Transport,
  path: string,
  query: RequestOptions["query"],
  { signal }: Pick<CallOptions, "signal"> = {},
): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  // Only the last entry of a page has a cursor; after a break the server repeats those since then, in the same order.
  let sinceCursor = 0;
  for (let failures = 0; ; ) {
    const connection = new AbortController();
    const all = signal === undefined ? connection.signal : AbortSignal.any([signal, connection.signal]);
    const unanswered = setTimeout(() => connection.abort(new ConnectionFailed("the stream does not open")), silenceMs);
    try {
      const response = await transport.open("GET", path, {
        query: { ...query, follow: true },
        ...(cursor !== undefined && { headers: { "last-event-id": cursor } }),
        signal: all,
      });
      clearTimeout(unanswered);
      let repeated = sinceCursor;
      for await (const { id, type, data } of readServerEvents(response, silenceMs)) {
        failures = 0;
        if (type === "error") throw errorOf(JSON.parse(data) as Problem);
        if (type !== "message") continue;
        if (repeated > 0) {
          repeated -= 1;
        } else {
          sinceCursor += 1;
          yield JSON.parse(data) as T;
        }
        if (id !== undefined) [cursor, sinceCursor, repeated] = [id, 0, 0];
      }
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      failures += 1;
      // A broken connection is no reason to give up, however often; a refusal is.
      const attempt = error instanceof ConnectionFailed ? Math.min(failures, usualRetries.retries) : failures;
      const pauseMs = pauseBeforeRetry(error, attempt, usualRetries, Math.random());
      if (pauseMs === undefined) throw error;
      await pause(pauseMs, signal);
    } finally {
      clearTimeout(unanswered);
      connection.abort();
    }
  }
}
