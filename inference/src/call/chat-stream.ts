import { createParser } from "eventsource-parser";
import type { Tokens } from "../journal/journal-state.ts";
import { isRecord } from "./check-call.ts";
import { textsOf, usageIn } from "./upstream-body.ts";
import { tokenCount } from "./usage.ts";

/** Reads a provider's event stream while it is forwarded. */
export interface ChatStream {
  /** Parses bytes of the provider; returns the text to forward, up to the error of a broken stream. */
  push(bytes: Uint8Array): string;
  /** Set once the bytes are not a valid event stream, or contain an error; later bytes are ignored. */
  readonly broken: StreamBroken | undefined;
  /** True after the end mark. */
  readonly isDone: boolean;
  /** True after the end mark, or once every choice has its `finish_reason`: some providers send no end mark. */
  readonly isFinished: boolean;
  /** True if a choice had any output. */
  readonly hasOutput: boolean;
  /** Last reported usage object; undefined if there was none. */
  readonly usage: unknown;
  /** Text of the response so far, for the proxy's own count of tokens. */
  readonly text: string;
  /** Start of a response without any event, such as a page of HTML; otherwise empty. */
  readonly otherText: string;
  /**
   * The end of the client's stream: a chunk with the usage and without choices, then the end mark. Numbers that the
   * provider reported remain; the given ones replace those that are missing.
   */
  ending(usage: Tokens): string;
}

/** The failure of a stream that is invalid, or that the provider ended with an error. */
export interface StreamBroken {
  readonly message: string;
  /** The error event, parsed if it is JSON; absent if the stream is invalid. */
  readonly event?: unknown;
}

const maxTextLength = 4 << 20;
const maxOtherTextLength = 64 << 10;
const endMark = "[DONE]";
const endedWithError = "The provider ended the stream with an error.";

/** `model` is the model's name as in the client's request, `count` the number of choices that it requests. */
export function createChatStream({ model, count }: { readonly model: string; readonly count: number }): ChatStream {
  const decoder = new TextDecoder();
  let out = "";
  let isDone = false;
  let broken: StreamBroken | undefined;
  let hasEvents = false;
  let hasOutput = false;
  let text = "";
  let otherText = "";
  let last: Record<string, unknown> = {};
  /** Last usage object, including the provider's additional fields. */
  let reported: unknown;
  const finished = new Set<unknown>();

  function readChoices(chunk: Record<string, unknown>): void {
    const choices = Array.isArray(chunk["choices"]) ? (chunk["choices"] as readonly unknown[]) : [];
    for (const choice of choices) {
      if (!isRecord(choice)) continue;
      const { index = 0, finish_reason: reason } = choice;
      if (typeof reason === "string" && reason !== "") finished.add(index);
    }
    const added = textsOf(chunk);
    hasOutput ||= added !== "";
    if (text.length < maxTextLength) text += added;
  }

  const parser = createParser({
    onEvent({ event, data }) {
      hasEvents = true;
      if (isDone || broken !== undefined) return;
      if (data === endMark) {
        isDone = true;
        return;
      }
      const chunk = parsed(data);
      if (event === "error") {
        broken = { message: endedWithError, event: chunk ?? { error: data } };
        return;
      }
      if (!isRecord(chunk)) {
        broken = { message: "A chunk of the stream is not a JSON object." };
        return;
      }
      const { error } = chunk;
      if (isRecord(error) || (typeof error === "string" && error !== "")) {
        broken = { message: endedWithError, event: chunk };
        return;
      }
      last = chunk;
      readChoices(chunk);
      reported = usageIn(chunk) ?? reported;
      if (chunk["usage"] === undefined || chunk["usage"] === null) {
        out += `data: ${data}\n\n`;
        return;
      }
      const choices = chunk["choices"];
      // The client receives usage once, at the end.
      if (Array.isArray(choices) && choices.length > 0) {
        const { usage: _, ...rest } = chunk;
        out += `data: ${JSON.stringify(rest)}\n\n`;
      }
    },
    // Comments are forwarded: providers send them so that connections do not time out while a model computes.
    onComment(comment) {
      if (!isDone && broken === undefined) out += `: ${comment}\n\n`;
    },
    onError(error) {
      // The standard ignores unknown fields; other parse errors mean that this is not an event stream.
      if (error.type !== "unknown-field") broken ??= { message: "The stream is not an event stream." };
    },
  });

  return {
    push(bytes) {
      out = "";
      const decoded = decoder.decode(bytes, { stream: true });
      if (!hasEvents && otherText.length < maxOtherTextLength) otherText += decoded;
      parser.feed(decoded);
      if (hasEvents) otherText = "";
      return out;
    },
    get broken() {
      return broken;
    },
    get isDone() {
      return isDone;
    },
    get isFinished() {
      return isDone || finished.size >= count;
    },
    get hasOutput() {
      return hasOutput;
    },
    get usage() {
      return reported;
    },
    get text() {
      return text;
    },
    get otherText() {
      return otherText;
    },
    ending({ promptTokens, completionTokens }) {
      const { id = "chatcmpl", created = 0 } = last;
      const numbers = isRecord(reported) ? reported : {};
      const chunk = {
        id,
        object: "chat.completion.chunk",
        created,
        model: last["model"] ?? model,
        choices: [],
        usage: {
          ...numbers,
          prompt_tokens: tokenCount(numbers["prompt_tokens"]) ?? promptTokens,
          completion_tokens: tokenCount(numbers["completion_tokens"]) ?? completionTokens,
          total_tokens: tokenCount(numbers["total_tokens"]) ?? promptTokens + completionTokens,
        },
      };
      return `data: ${JSON.stringify(chunk)}\n\ndata: ${endMark}\n\n`;
    },
  };
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data) as unknown;
  } catch {
    return undefined;
  }
}
