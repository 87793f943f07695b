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

/**
 * The error in a parsed response, in any of the forms that providers use: an `error` object, a text as `error`,
 * `message` or `detail` at the top level, a `detail` list of invalid members (FastAPI), or a list of one such object.
 */
export function providerErrorOf(response: unknown): ProviderError | undefined {
  const [body] = Array.isArray(response) ? (response as readonly unknown[]) : [response];
  if (!isRecord(body)) return undefined;
  const { error, message, detail } = body;
  if (isRecord(error)) return { message: messageOf(error), ...termsOf(error) };
  const text = [error, message, detail].find((each) => typeof each === "string" && each !== "");
  if (typeof text === "string") return { message: text.slice(0, maxMessageLength), ...termsOf(body) };
  if (isRecord(detail)) return { message: messageOf(detail), ...termsOf(detail) };
  const [invalid] = Array.isArray(detail) ? (detail as readonly unknown[]) : [];
  if (!isRecord(invalid) || typeof invalid["msg"] !== "string") return undefined;
  const path = Array.isArray(invalid["loc"]) ? invalid["loc"].filter((part) => part !== "body").join(".") : "";
  return {
    message: invalid["msg"].slice(0, maxMessageLength),
    ...(path !== "" && { param: path.slice(0, maxTermLength) }),
  };
}

/** The error in the text of a response. A text that is not JSON is the message itself, without tags. */
export function providerErrorIn(text: string): ProviderError | undefined {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    const excerpt = text
      .replaceAll(/<(script|style)\b.*?<\/\1>/gis, " ")
      .replaceAll(/<[^>]*>/g, " ")
      .replaceAll(/[\p{Cc}\s]+/gu, " ")
      .trim();
    return excerpt === "" ? undefined : { message: excerpt.slice(0, maxExcerptLength) };
  }
  return providerErrorOf(body);
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
