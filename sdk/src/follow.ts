import { ConnectionFailed, errorOf, type Problem } from "./errors.ts";
import { pause, pauseBeforeRetry, defaultRetries } from "./retry.ts";
import { anyOf, type CallOptions, type RequestOptions, type Transport } from "./transport.ts";

/** The retry policy of a stream that was open before: it reconnects without a limit of attempts. */
const openStreamRetries = { ...defaultRetries, retries: Number.POSITIVE_INFINITY };

/** The server writes at least every 15 s. A connection without data for this time is considered lost. */
const silenceMs = 50_000;

/**
 * Yields entries of a list as they are added, until the signal aborts; the iteration then throws the signal's reason. A
 * broken connection is reopened at its last cursor, and each entry is yielded once.
 */
export async function* follow<T>(
  transport: Transport,
  path: string,
  query: RequestOptions["query"],
  options: Pick<CallOptions, "signal"> = {},
): AsyncGenerator<T, void, undefined> {
  const signal = anyOf(options.signal, transport.signal);
  let cursor: string | undefined;
  // Only the last entry of a page has a cursor. After a reconnect the server repeats later entries in the same order.
  let sinceCursor = 0;
  let policy = defaultRetries;
  for (let failures = 0; ; ) {
    const connection = new AbortController();
    const openTimer = setTimeout(
      () => connection.abort(new ConnectionFailed("the stream did not open in time")),
      silenceMs,
    );
    try {
      const response = await transport.open("GET", path, {
        query: { ...query, follow: true },
        ...(cursor !== undefined && { headers: { "last-event-id": cursor } }),
        signal: anyOf(signal, connection.signal),
      });
      clearTimeout(openTimer);
      policy = openStreamRetries;
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
      clearTimeout(openTimer);
      connection.abort();
    }
  }
}

/** A server-sent event. The type is "message" by default, and "comment" for comments. */
export interface ServerEvent {
  readonly id: string | undefined;
  readonly type: string;
  readonly data: string;
}

/**
 * Reads a response of type text/event-stream. Throws ConnectionFailed when it ends, breaks, or has no data for
 * `silenceMs`.
 */
export async function* readServerEvents(
  response: Response,
  silenceMs: number,
): AsyncGenerator<ServerEvent, void, undefined> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) throw new ConnectionFailed("the stream has no body");
  let text = "";
  try {
    for (;;) {
      const chunk = await within(silenceMs, reader.read());
      if (chunk.done) throw new ConnectionFailed("the stream ended");
      const blocks = (text + chunk.value).split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) yield parse(block);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parse(block: string): ServerEvent {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    const before = name === "data" ? fields.get(name) : undefined;
    fields.set(name, before === undefined ? value : `${before}\n${value}`);
  }
  const data = fields.get("data");
  return {
    id: fields.get("id"),
    type: data === undefined ? "comment" : (fields.get("event") ?? "message"),
    data: data ?? "",
  };
}

async function within<T>(limitMs: number, read: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silent = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ConnectionFailed(`the stream had no data for ${limitMs} ms`)), limitMs);
  });
  try {
    return await Promise.race([read, silent]);
  } catch (cause) {
    throw cause instanceof ConnectionFailed ? cause : new ConnectionFailed("the stream broke", { cause });
  } finally {
    clearTimeout(timer);
  }
}
