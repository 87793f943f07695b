import type { CheckedCall } from "./check-call.ts";
import { isRecord } from "./check-call.ts";

/**
 * The request body for the provider: the client's text with the model's name without its prefix and, in a stream, with
 * a request for usage. All other members remain as the client wrote them: parsing would change numbers beyond 2^53.
 */
export function upstreamBody({ text, members, body, model, stream }: CheckedCall): string {
  const changes = new Map([["model", JSON.stringify(model)]]);
  if (stream) {
    const options = isRecord(body["stream_options"]) ? body["stream_options"] : {};
    const value = JSON.stringify({ ...options, include_usage: true });
    if (members.has("stream_options")) changes.set("stream_options", value);
    else changes.set("model", `${JSON.stringify(model)},"stream_options":${value}`);
  }
  let out = "";
  let at = 0;
  for (const [name, { start, end }] of members) {
    const value = changes.get(name);
    if (value === undefined) continue;
    out += text.slice(at, start) + value;
    at = end;
  }
  return out + text.slice(at);
}

/** Usage object of a response or chunk, of any shape: some providers have it in a choice. */
export function usageIn(response: unknown): unknown {
  if (!isRecord(response)) return undefined;
  const choices = Array.isArray(response["choices"]) ? (response["choices"] as readonly unknown[]) : [];
  const inChoice = choices.find((choice) => isRecord(choice) && isRecord(choice["usage"]));
  return response["usage"] ?? (isRecord(inChoice) ? inChoice["usage"] : undefined);
}

/** Text of a response or chunk, for the proxy's own count of tokens. */
export function textsOf(response: unknown): string {
  if (!isRecord(response) || !Array.isArray(response["choices"])) return "";
  let text = "";
  for (const choice of response["choices"] as readonly unknown[]) {
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
