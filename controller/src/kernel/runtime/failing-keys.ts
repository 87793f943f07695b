import { hash } from "./ownership.ts";

/** Maximum number of failing keys of a reconciler whose error is in memory; further keys are only counted. */
export const describedKeysMax = 20;

/** A key whose last reconcile failed, or still runs after its abort. */
export interface FailingKey {
  readonly key: string;
  /** Number of failures since the last success. */
  readonly failures: number;
  /** Time of the first of these failures, in milliseconds since 1970. */
  readonly since: number;
  /** The last error, formatted by `errorText`. */
  readonly lastError: string;
}

/** The failing keys of one reconciler, in the order of their first failures. */
export interface FailingKeys {
  /** Number of failing keys. */
  readonly count: number;
  /** The last failure of any key, including keys that have recovered; undefined before the first failure. */
  readonly last: { readonly error: string; readonly at: number } | undefined;
  /** Number of failures of the key since its last success. */
  failuresOf(key: string): number;
  /** Counts a failure. `isNewError` is false if the key's previous failure had the same text. */
  failed(key: string, error: unknown): { readonly failures: number; readonly isNewError: boolean };
  /** Resets a key that succeeded, or that another controller owns now. */
  end(key: string): void;
  /** At most `describedKeysMax` of the failing keys. */
  described(): FailingKey[];
}

interface Failure {
  failures: number;
  readonly since: number;
  /** Hash of the error's text, so that a key uses little memory even if every key fails. */
  errorHash: number;
}

export function createFailingKeys(now: () => number): FailingKeys {
  const failing = new Map<string, Failure>();
  const texts = new Map<string, string>();
  let last: FailingKeys["last"];
  return {
    get count() {
      return failing.size;
    },
    get last() {
      return last;
    },
    failuresOf: (key) => failing.get(key)?.failures ?? 0,
    failed(key, error) {
      const [text, at] = [errorText(error), now()];
      const errorHash = hash(text);
      last = { error: text, at };
      const before = failing.get(key);
      const failure = before ?? { failures: 0, since: at, errorHash };
      const isNewError = before?.errorHash !== errorHash;
      failure.failures += 1;
      failure.errorHash = errorHash;
      failing.set(key, failure);
      // A key that recovers frees its text, which the next failing key can use.
      if (texts.has(key) || texts.size < describedKeysMax) texts.set(key, text);
      return { failures: failure.failures, isNewError };
    },
    end(key) {
      failing.delete(key);
      texts.delete(key);
    },
    described: () =>
      [...texts].flatMap(([key, lastError]) => {
        const failure = failing.get(key);
        return failure === undefined ? [] : [{ key, failures: failure.failures, since: failure.since, lastError }];
      }),
  };
}

/** Maximum length of an error's text that operators see, in characters. */
const textLengthMax = 300;
/** Maximum length of one message that is searched for secrets, in characters; the rest is dropped. */
const searchedLengthMax = 4_096;
const causesMax = 3;

/**
 * Patterns of texts that are, or may contain, a secret: PEM blocks, user information and signatures of URLs,
 * credentials of HTTP and of Holdfast (docs/reference/api-stability.md, "Reserved words"), verifiers of PostgreSQL, and
 * values named like a secret.
 */
// biome-ignore format: a table
const secrets: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/-----BEGIN [^-]*-----[^]*?(?:-----END [^-]*-----|$)/g,                                  "[redacted]"],
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/@]*@/gi,                                                 "$1[redacted]@"],
  [/([?&])[^=?&\s]*(?:signature|credential|token|key|secret|password)[^=?&\s]*=[^&\s"']*/gi,  "$1[redacted]"],
  [/\b(basic|bearer)\s+[\w+/=.~-]{6,}/gi,                                                   "$1 [redacted]"],
  [/\b(?:hf[a-z]|whs)_[\w.-]{6,}/g,                                                         "[redacted]"],
  [/\bSCRAM-SHA-256\$\S+/g,                                                                 "[redacted]"],
  [/(["']?\b\w*(?:password|passwd|secret|token|authorization|verifier|private_?key)["']?\s*[:=]\s*)(?:"[^"]*"?|'[^']*'?|[^\s,;)}]+)/gi, "$1[redacted]"],
];

/** The text of an error with its causes, on one line, without secrets, and at most 300 characters long. */
export function errorText(error: unknown): string {
  const messages: string[] = [];
  let current = error;
  for (let depth = 0; depth <= causesMax && current !== undefined && current !== null; depth += 1) {
    const text = messageOf(current).slice(0, searchedLengthMax);
    if (!messages.some((message) => message.includes(text))) messages.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  const redacted = secrets.reduce(
    (text, [pattern, replacement]) => text.replaceAll(pattern, replacement),
    messages.join(": caused by "),
  );
  // A control character would let an error write to the terminal of an operator.
  const line = redacted.replaceAll(/[\s\p{Cc}]+/gu, " ").trim();
  return line.length <= textLengthMax ? line : `${line.slice(0, textLengthMax - 1)}…`;
}

function messageOf(error: unknown): string {
  if (typeof error === "string") return error;
  return error instanceof Error ? String(error) : "unknown error";
}
