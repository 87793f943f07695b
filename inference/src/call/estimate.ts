import type { Tokens } from "../journal/journal-state.ts";
import type { CheckedCall } from "./check-call.ts";

const bytesPerToken = 3;
const tokensPerMessage = 4;
const tokensPerData = 2_000;

/**
 * Upper estimate of a call's tokens: the prompt by its bytes, the output by the call's own limit or the model's
 * maximum.
 */
export function estimateCall(call: CheckedCall, maxOutputTokens: number): Tokens {
  const size = { bytes: 0, data: 0 };
  const prompt =
    call.kind === "chat" ? [call.body["messages"], call.body["tools"], call.body["functions"]] : [call.body["input"]];
  for (const part of prompt) measure(part, size);
  const messages = Array.isArray(call.body["messages"]) ? call.body["messages"].length : 1;
  return {
    promptTokens: Math.ceil(size.bytes / bytesPerToken) + tokensPerMessage * messages + tokensPerData * size.data,
    completionTokens: call.kind === "chat" ? (call.maxTokens ?? maxOutputTokens) * call.count : 0,
  };
}

/**
 * Adds the bytes of texts and names; embedded data such as an image counts as one item. A number counts as a token of
 * three bytes.
 */
function measure(value: unknown, size: { bytes: number; data: number }): void {
  if (typeof value === "string") {
    if (/^data:/i.test(value)) size.data += 1;
    else size.bytes += Buffer.byteLength(value);
  } else if (typeof value === "number") size.bytes += bytesPerToken;
  else if (Array.isArray(value)) for (const each of value) measure(each, size);
  else if (typeof value === "object" && value !== null) {
    for (const [name, each] of Object.entries(value)) {
      size.bytes += name.length;
      measure(each, size);
    }
  }
}
