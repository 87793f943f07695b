import { ConnectionFailed } from "./errors.ts";

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
    const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
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
