import { createParser } from "eventsource-parser";
import type { Tokens } from "../journal/journal-state.ts";
import { isRecord } from "./check-call.ts";
import { textsOf } from "./upstream-body.ts";
import { readUsage } from "./usage.ts";

/** What is read of an upstream's stream beside passing it on. */
export interface ChatStream {
  /** Bytes of the upstream; answers what the client is to get for them. Throws StreamBroken for what is no stream of chunks. */
  push(bytes: Uint8Array): string;
  /** The upstream said that this is the end. */
  readonly isDone: boolean;
  /** The last usage that it told, if that can be true. */
  readonly usage: Tokens | undefined;
  /** Texts of the answer so far, for our own count. */
  readonly text: string;
  /** What ends the client's stream: a chunk with the usage and no choices, then the mark of the end. */
  ending(usage: Tokens): string;
}

export class StreamBroken extends Error {
  override readonly name = "StreamBroken";
}

/** An event, or a line of one, has at most so many characters. */
const eventMax = 1 << 20;
const textMax = 4 << 20;
const endMark = "[DONE]";

/** `model` is how the client named it. */
export function createChatStream(reserved: Tokens, model: string): ChatStream {
  const decoder = new TextDecoder();
  let out = "";
  let isDone = false;
  let usage: Tokens | undefined;
  let text = "";
  let last: Record<string, unknown> = {};
  /** With the details that providers add. */
  let told: unknown;
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
      told = chunk["usage"] ?? told;
      if (chunk["usage"] === undefined || chunk["usage"] === null) {
        out += `data: ${data}\n\n`;
        return;
      }
      usage = readUsage(chunk["usage"], reserved);
      const choices = chunk["choices"];
      // The client gets usage once, at the end.
      if (Array.isArray(choices) && choices.length > 0) {
        const { usage: _, ...rest } = chunk;
        out += `data: ${JSON.stringify(rest)}\n\n`;
      }
    },
    onError(error) {
      // A line that is no field of an event is to be ignored; one without end is not.
      if (error.type !== "unknown-field") throw new StreamBroken("The stream is not made of events.");
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
          ...(usage !== undefined && isRecord(told) && told),
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
