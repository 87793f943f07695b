declare const isInteger: unique symbol;
declare const isStorable: unique symbol;

/** An integer number of seconds, which fields of the HTTP API require. */
export type IntegerSeconds = number & { readonly [isInteger]: true };

/** A text that every backend can send and store: well-formed, without NUL, at most 4096 UTF-16 units long. */
export type ErrorText = string & { readonly [isStorable]: true };

/** Maximum delay and visibility timeout of the API. */
const maxSeconds = 43_200;
/** Maximum delay of a retry before its jitter. */
const maxBackoffSeconds = 36_000;

const maxErrorTextLength = 4096;

/** The seconds rounded up, so that a delay or a claim never ends early. */
export function integerSeconds(seconds: number): IntegerSeconds {
  return Math.ceil(seconds) as IntegerSeconds;
}

/** 2, 4, 8 seconds and so on, up to 15 minutes. */
export const defaultBackoff = (attemptCount: number): number => Math.min(2 ** attemptCount, 900);

/**
 * The delay before the next attempt in seconds, 0 to 43200, with a jitter of a fifth, so that messages that failed
 * together are not retried together. `seconds` is the result of a caller's function: the default applies if it is not a
 * number.
 */
export function retryDelay(seconds: unknown, attemptCount: number, random: () => number = Math.random): number {
  const base = typeof seconds === "number" && !Number.isNaN(seconds) ? seconds : defaultBackoff(attemptCount);
  return Math.min(jittered(Math.min(Math.max(base, 0), maxBackoffSeconds), random), maxSeconds);
}

/** The value with a jitter of a fifth. */
export function jittered(value: number, random: () => number = Math.random): number {
  return value * (0.8 + 0.4 * random());
}

/** The text of an error of a handler, which may be any value. Never throws. */
export function errorText(error: unknown): ErrorText {
  // A cut can divide a surrogate pair, so lone surrogates are replaced afterwards.
  return textOf(error)
    .slice(0, maxErrorTextLength)
    .replaceAll("\0", "")
    .replace(/\p{Surrogate}/gu, "\uFFFD") as ErrorText;
}

function textOf(error: unknown): string {
  try {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  } catch {
    // String() throws for an object without a prototype, and a getter may throw.
    return "an error without a text";
  }
}
