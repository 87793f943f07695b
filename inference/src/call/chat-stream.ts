import { createParser } from "eventsource-parser";
import type { Tokens } from "../journal/journal-state.ts";
import { isRecord } from "./check-call.ts";
import { textsOf } from "./upstream-body.ts";
import { readUsage } from "./usage.ts";

/** Reads a provider's event stream while it is forwarded. */
export interface ChatStream {
  /**
   * Parses bytes of the provider; returns the text to forward. Throws StreamBroken if they are not a valid event
   * stream.
   */
  push(bytes: Uint8Array): string;
  /** True after the end mark. */
  readonly isDone: boolean;
  /** Last reported usage, if it is plausible. */
  readonly usage: Tokens | undefined;
  /** Text of the response so far, for our own token count. */
  readonly text: string;
  /** The end of the client's stream: a chunk with the usage and without choices, then the end mark. */
  ending(usage: Tokens): string;
}

export class StreamBroken extends Error {
  override readonly name = "StreamBroken";
}

/** Maximum number of characters of an event. */
const eventMax = 1 << 20;
const textMax = 4 << 20;
const endMark = "[DONE]";

/** `model` is the model's name as in the client's request. */
export function createChatStream(reserved: Tokens, model: string): ChatStream {
  const decoder = new TextDecoder();
  let out = "";
  let isDone = false;
  let usage: Tokens | undefined;
  let text = "";
  let last: Record<string, unknown> = {};
  /** Last usage object, including the provider's additional fields. */
  let reported: unknown;
  let pending = 0;

  const parser = createParser({
    onEvent({ data }) {
      pending = 0;
      if (isDone) return;
      if (data === endMark) {
        isDone = true;
        return;
      }
      const chunk = parsed(data);
      if (isRecord(chunk["error"])) throw new StreamBroken("The provider ended the stream with an error.");
      last = chunk;
      if (text.length < textMax) text += textsOf(chunk);
      reported = chunk["usage"] ?? reported;
      if (chunk["usage"] === undefined || chunk["usage"] === null) {
        out += `data: ${data}\n\n`;
        return;
      }
      usage = readUsage(chunk["usage"], reserved);
      const choices = chunk["choices"];
      // The client receives usage once, at the end.
      if (Array.isArray(choices) && choices.length > 0) {
        const { usage: _, ...rest } = chunk;
        out += `data: ${JSON.stringify(rest)}\n\n`;
      }
    },
    onError(error) {
      // Unknown fields are ignored by the standard; other parse errors are not.
      if (error.type !== "unknown-field") throw new StreamBroken("The stream is not an event stream.");
    },
  });

  return {
    push(bytes) {
      out = "";
      pending += bytes.length;
      parser.feed(decoder.decode(bytes, { stream: true }));
      if (pending > eventMax) throw new StreamBroken("An event of the stream has no end.");
      return out;
    },
    get isDone() {
      return isDone;
    },
    get usage() {
      return usage;
    },
    get text() {
      return text;
    },
    ending({ promptTokens, completionTokens }) {
      const { id = "chatcmpl", created = 0 } = last;
      const chunk = {
        id,
        object: "chat.completion.chunk",
        created,
        model: last["model"] ?? model,
        choices: [],
        usage: {
          ...(usage !== undefined && isRecord(reported) && reported),
          prompt_tokens: promptTokens,
          completion_tokens: completionTokens,
          total_tokens: promptTokens + completionTokens,
        },
      };
      return `data: ${JSON.stringify(chunk)}\n\ndata: ${endMark}\n\n`;
    },
  };
}

function parsed(data: string): Record<string, unknown> {
  let chunk: unknown;
  try {
    chunk = JSON.parse(data);
  } catch {
    throw new StreamBroken("A chunk of the stream is not JSON.");
  }
  if (!isRecord(chunk)) throw new StreamBroken("A chunk of the stream is not an object.");
  return chunk;
}
