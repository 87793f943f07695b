/** Response of a target. Its body must be read once or dropped. */
export interface EgressResponse {
  readonly status: number;
  /** Headers by lower-case name; repeated headers are joined with `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** Wait that the target requests before the next request; undefined if there is none. */
  readonly retryAfterMs: number | undefined;
  /** Streams the body. Throws EgressFailure: `too large` above the limit, `timeout` after the deadline. */
  readonly body: AsyncIterable<Uint8Array>;
  /** Reads the complete body. Throws as `body` does. */
  bytes(): Promise<Buffer>;
  /** Discards the body. A small remainder is read so that the connection can be reused. */
  drop(): Promise<void>;
}

/**
 * Parses Retry-After (RFC 9110 section 10.2.3), seconds or a date, into milliseconds from now, at most a day.
 * Undefined for anything else.
 */
export function retryAfterMsOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), 86_400_000);
}
