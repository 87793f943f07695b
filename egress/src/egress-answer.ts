/** What a target answered. Its body is read once, or dropped. */
export interface EgressAnswer {
  readonly status: number;
  /** By name in lower case; several of one name are joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  /** How long the target asks to wait before the next request; undefined when it does not say. */
  readonly retryAfterMs: number | undefined;
  /** The body as it comes. Throws EgressFailure: `too large` past the bound, `timeout` past the deadline. */
  readonly body: AsyncIterable<Uint8Array>;
  /** The whole body. Throws as `body` does. */
  bytes(): Promise<Buffer>;
  /** Ends it without reading the rest, beyond a little that lets the connection serve again. */
  drop(): Promise<void>;
}

/** Pure: seconds or a date (RFC 9110, 10.2.3), as milliseconds from now, at most a day; undefined for anything else. */
export function retryAfterMsOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), 86_400_000);
}
