import { errorText } from "./error-text.ts";
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
