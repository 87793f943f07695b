import { type ApiError, apiError } from "../http/api-error.ts";
import type { Tokens } from "../journal/journal-state.ts";
import { type Members, membersOf, nestsDeeper } from "./json-text.ts";

export type CallKind = "chat" | "embeddings";

/** A body whose shape is validated as far as limits and routing depend on it. */
export interface CheckedCall {
  readonly kind: CallKind;
  /** The body as the client sent it, without a byte order mark. */
  readonly text: string;
  /** Positions of the members in the text. */
  readonly members: Members["values"];
  /** The parsed body. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Provider: the prefix of the model. */
  readonly provider: string;
  /** Model without the prefix. */
  readonly model: string;
  readonly stream: boolean;
  /** Requested maximum of output tokens; undefined if there is none. */
  readonly maxTokens: number | undefined;
  /** Number of requested choices. */
  readonly count: number;
}

/** Members that would redirect the call or replace its key. */
const reservedMembers = ["api_base", "base_url", "api_key", "extra_headers"];
const maxChoices = 128;
const maxTokensPerChoice = 10_000_000;
/** Maximum nesting of a body; schemas of tools have about twenty levels. */
const maxDepth = 100;

/** Validates the body of a call. An error names the member that is invalid. */
export function checkCall(kind: CallKind, text: string): CheckedCall | ApiError {
  const fault = (param: string | undefined, message: string) =>
    apiError("invalid_model", message, param === undefined ? {} : { param });
  if (nestsDeeper(text, maxDepth)) return fault(undefined, `The body is nested deeper than ${maxDepth} levels.`);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return fault(undefined, "The body is not JSON.");
  }
  if (!isRecord(body)) return fault(undefined, "The body must be a JSON object.");
  const { values: members, duplicate } = membersOf(text);
  if (duplicate !== undefined) return fault(truncated(duplicate), "The body contains this member twice.");
  const reserved = reservedMembers.find((name) => Object.hasOwn(body, name));
  if (reserved !== undefined)
    return fault(reserved, `${reserved} cannot be set by a call; providers are configured in the organization.`);
  const { model, stream = false, n } = body;
  if (typeof model !== "string") return fault("model", "model must be a string such as provider_a/name.");
  const slash = model.indexOf("/");
  if (slash < 1 || slash === model.length - 1 || model.length > 256 || /[^\x21-\x7e]/.test(model))
    return fault("model", "model must begin with the prefix of a provider, such as provider_a/name.");
  const shapeFault = kind === "chat" ? chatFault(body) : embeddingsFault(body);
  if (shapeFault !== undefined) return fault(shapeFault.param, shapeFault.message);
  if (stream !== null && typeof stream !== "boolean") return fault("stream", "stream must be true or false.");
  if (n !== undefined && n !== null && !isCount(n, maxChoices))
    return fault("n", `n must be an integer from 1 to ${maxChoices}.`);
  let maxTokens: number | undefined;
  for (const name of ["max_tokens", "max_completion_tokens"]) {
    const value = body[name];
    if (value === undefined || value === null) continue;
    if (!isCount(value, maxTokensPerChoice))
      return fault(name, `${name} must be an integer from 1 to ${maxTokensPerChoice}.`);
    maxTokens = Math.max(maxTokens ?? 0, value);
  }
  return {
    kind,
    text,
    members,
    body,
    provider: model.slice(0, slash),
    model: model.slice(slash + 1),
    stream: kind === "chat" && stream === true,
    maxTokens,
    count: typeof n === "number" ? n : 1,
  };
}

interface Fault {
  readonly param: string;
  readonly message: string;
}

function chatFault({ messages, stream_options: options, tools }: Readonly<Record<string, unknown>>): Fault | undefined {
  if (!Array.isArray(messages) || messages.length === 0)
    return { param: "messages", message: "messages must be a list with at least one message." };
  for (const [index, message] of messages.entries()) {
    const param = `messages[${index}]`;
    if (!isRecord(message) || typeof message["role"] !== "string")
      return { param, message: `${param} must be an object with a role.` };
    const { content } = message;
    if (content !== undefined && content !== null && typeof content !== "string" && !isListOf(content, isRecord))
      return { param: `${param}.content`, message: `${param}.content must be a string or a list of parts.` };
  }
  if (options !== undefined && options !== null && !isRecord(options))
    return { param: "stream_options", message: "stream_options must be an object." };
  if (tools !== undefined && tools !== null && !Array.isArray(tools))
    return { param: "tools", message: "tools must be a list." };
  return undefined;
}

function embeddingsFault({ input }: Readonly<Record<string, unknown>>): Fault | undefined {
  const isText = (value: unknown) => typeof value === "string";
  const isTokens = (value: unknown) => isListOf(value, (each) => Number.isInteger(each));
  if (isText(input) || isListOf(input, isText) || isTokens(input) || isListOf(input, isTokens)) return undefined;
  return { param: "input", message: "input must be a string, a list of strings, or tokens." };
}

function isListOf(value: unknown, is: (each: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(is);
}

function isCount(value: unknown, max: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function truncated(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}…` : name;
}

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
