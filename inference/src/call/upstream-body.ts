import type { CheckedCall } from "./check-call.ts";
import { isRecord } from "./check-call.ts";

/**
 * The request body for the provider, serialized from the validated object: the model without its prefix, and usage
 * always requested.
 */
export function upstreamBody({ body, model, stream }: CheckedCall): string {
  if (!stream) return JSON.stringify({ ...body, model });
  const options = isRecord(body["stream_options"]) ? body["stream_options"] : {};
  return JSON.stringify({ ...body, model, stream_options: { ...options, include_usage: true } });
}

/** Text of a response or chunk, for our own token count. */
export function textsOf(answer: unknown): string {
  if (!isRecord(answer) || !Array.isArray(answer["choices"])) return "";
  let text = "";
  for (const choice of answer["choices"] as readonly unknown[]) {
    if (!isRecord(choice)) continue;
    const message = choice["delta"] ?? choice["message"];
    if (isRecord(message)) text += textOf(message);
    else if (typeof choice["text"] === "string") text += choice["text"];
  }
  return text;
}

function textOf({ content, reasoning_content: reasoning, tool_calls: calls }: Record<string, unknown>): string {
  const text = [content, reasoning].filter((each) => typeof each === "string").join("");
  return Array.isArray(calls) && calls.length > 0 ? text + JSON.stringify(calls) : text;
}
