import { isRecord } from "./check-call.ts";

/** The error of a provider, as far as its response has one. */
export interface ProviderError {
  readonly message?: string;
  readonly type?: string;
  readonly code?: string;
  readonly param?: string;
}

const maxMessageLength = 1_000;
const maxTermLength = 200;
const maxExcerptLength = 200;
const byteOrderMark = "\ufeff";

/**
 * The error in a parsed response, in any of the forms that providers use: an `error` object, a text as `error`,
 * `message`, `detail` or `title` at the top level, a `detail` list of invalid members (FastAPI), or a list of such
 * objects, also as `errors`.
 */
export function providerErrorOf(response: unknown): ProviderError | undefined {
  const [body] = Array.isArray(response) ? (response as readonly unknown[]) : [response];
  if (!isRecord(body)) return undefined;
  const { error, errors, message, detail, title } = body;
  if (isRecord(error)) return { message: messageOf(error), ...termsOf(error) };
  const text = [error, message, detail, title].find((each) => typeof each === "string" && each !== "");
  if (typeof text === "string") return { message: text.slice(0, maxMessageLength), ...termsOf(body) };
  if (isRecord(detail)) return { message: messageOf(detail), ...termsOf(detail) };
  const [first] = Array.isArray(errors) ? (errors as readonly unknown[]) : [];
  if (typeof first === "string" && first !== "") return { message: first.slice(0, maxMessageLength) };
  if (isRecord(first)) return { message: messageOf(first), ...termsOf(first) };
  const [invalid] = Array.isArray(detail) ? (detail as readonly unknown[]) : [];
  if (!isRecord(invalid) || typeof invalid["msg"] !== "string") return undefined;
  const path = Array.isArray(invalid["loc"]) ? invalid["loc"].filter((part) => part !== "body").join(".") : "";
  return {
    message: invalid["msg"].slice(0, maxMessageLength),
    ...(path !== "" && { param: path.slice(0, maxTermLength) }),
  };
}

/**
 * The error in a response with status 200 that is not a completion. A text that is not JSON is the message itself,
 * without tags. Undefined for JSON without an error.
 */
export function errorInAnswer(text: string): ProviderError | undefined {
  const json = parsed(text);
  if (json !== undefined) return providerErrorOf(json.value);
  // A part of a completion is no message.
  if (isLikeJson(text)) return { message: "The provider's response is incomplete: it is not valid JSON." };
  const message = excerptOf(text);
  return message === "" ? undefined : { message };
}

/**
 * The error in a response whose status is an error. A text without a known form is the message itself, without tags;
 * JSON may be cut off at the end. Undefined for an empty text.
 */
export function errorInRefusal(text: string): ProviderError | undefined {
  const json = parsed(text);
  const error = json === undefined ? undefined : providerErrorOf(json.value);
  const message = (json === undefined && isLikeJson(text) ? messageInCut(text) : undefined) ?? excerptOf(text);
  return error ?? (message === "" ? undefined : { message });
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(withoutByteOrderMark(text)) };
  } catch {
    return undefined;
  }
}

/** The text without a byte order mark, which JSON does not permit and some providers send. */
export function withoutByteOrderMark(text: string): string {
  return text.startsWith(byteOrderMark) ? text.slice(1) : text;
}

function isLikeJson(text: string): boolean {
  return /^\s*[[{]/.test(withoutByteOrderMark(text));
}

/** The first message in JSON that is cut off, perhaps within the message. */
function messageInCut(text: string): string | undefined {
  const [, literal = ""] = /"(?:message|detail|error)"\s*:\s*"((?:[^"\\]|\\.)*)/s.exec(text) ?? [];
  const start = parsed(`"${literal.slice(0, maxMessageLength).replace(/\\(?:u[\da-f]{0,3})?$/i, "")}"`)?.value;
  return typeof start === "string" && start !== "" ? start : undefined;
}

function excerptOf(text: string): string {
  return withoutByteOrderMark(text)
    .replaceAll(/<(script|style)\b.*?<\/\1>/gis, " ")
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/[\p{Cc}\s]+/gu, " ")
    .trim()
    .slice(0, maxExcerptLength);
}

function messageOf(error: Readonly<Record<string, unknown>>): string {
  const text = [error["message"], error["msg"], error["detail"]].find(
    (each) => typeof each === "string" && each !== "",
  );
  return (typeof text === "string" ? text : JSON.stringify(error)).slice(0, maxMessageLength);
}

function termsOf({ type, code, param }: Readonly<Record<string, unknown>>): Omit<ProviderError, "message"> {
  const terms = Object.entries({ type, code, param }).flatMap(([name, value]) => {
    // Some providers use numbers as codes.
    const text = typeof value === "number" ? String(value) : value;
    return typeof text === "string" && text !== "" ? [[name, text.slice(0, maxTermLength)] as const] : [];
  });
  return Object.fromEntries(terms);
}
