import { ConnectionFailed, errorOf, type Problem } from "./errors.ts";
import { pause, pauseBeforeRetry, usualRetries } from "./retry.ts";
import { readServerEvents } from "./server-events.ts";
import { anyOf, type CallOptions, type RequestOptions, type Transport } from "./transport.ts";

/** Once it has begun, a stream survives every outage: its reader waits for later entries. */
const lastingRetries = { ...usualRetries, retries: Number.POSITIVE_INFINITY };

/** A sign of life comes every 15 s; without one for this long the connection is dead. */
const silenceMs = 50_000;

/**
 * Entries of a list as they come, until the signal aborts, which ends the iteration by the signal's reason. A
 * connection that breaks is opened again where it was: each entry comes once.
 */
export async function* follow<T>(
  transport: Transport,
  path: string,
  query: RequestOptions["query"],
  options: Pick<CallOptions, "signal"> = {},
): AsyncGenerator<T, void, undefined> {
  const signal = anyOf(options.signal, transport.signal);
  let cursor: string | undefined;
  // Only the last entry of a page has a cursor; after a break the server repeats those since then, in the same order.
  let sinceCursor = 0;
  let policy = usualRetries;
  for (let failures = 0; ; ) {
    const connection = new AbortController();
    const unanswered = setTimeout(() => connection.abort(new ConnectionFailed("the stream does not open")), silenceMs);
    try {
      const response = await transport.open("GET", path, {
        query: { ...query, follow: true },
        ...(cursor !== undefined && { headers: { "last-event-id": cursor } }),
        signal: anyOf(signal, connection.signal),
      });
      clearTimeout(unanswered);
      policy = lastingRetries;
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
      const pauseMs = pauseBeforeRetry(error, failures, policy, Math.random());
      if (pauseMs === undefined) throw error;
      await pause(pauseMs, signal);
    } finally {
      clearTimeout(unanswered);
      connection.abort();
    }
  }
}
