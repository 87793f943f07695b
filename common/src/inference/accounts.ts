/**
 * Limited quantities: the cost of an organization in a month, the tokens of a key in a month, and the requests of a key
 * in any 60 s. Amounts are integers: microcents, tokens or requests.
 */
export type AccountKind = "cost" | "tokens" | "rpm";

/** A quota account, parsed from its id, such as `cost.<organization>.2026-11` or `rpm.<key>`. */
export interface AccountName {
  readonly kind: AccountKind;
  /** The organization of `cost`, the key of the others. */
  readonly subject: string;
  /** Month in UTC, such as "2026-11"; empty for `rpm`, which has none. */
  readonly period: string;
}

export const rpmWindowMs = 60_000;
export const microcentsPerCent = 1_000_000;

export function costAccount(organizationId: string, period: string): string {
  return `cost.${organizationId}.${period}`;
}

export function tokensAccount(keyId: string, period: string): string {
  return `tokens.${keyId}.${period}`;
}

export function rpmAccount(keyId: string): string {
  return `rpm.${keyId}`;
}

/** Parses an account id; undefined if it is invalid. */
export function parseAccount(id: string): AccountName | undefined {
  const match = /^(?:(cost|tokens)\.([A-Za-z0-9_-]{1,64})\.(\d{4}-\d{2})|(rpm)\.([A-Za-z0-9_-]{1,64}))$/.exec(id);
  if (match === null) return undefined;
  const [, monthly, subject = "", period = "", rpm, key = ""] = match;
  if (rpm !== undefined) return { kind: "rpm", subject: key, period: "" };
  return { kind: monthly as AccountKind, subject, period };
}

/** The month of the last call, which is nearly always the month of the next one. */
let cachedMonth = { period: "", from: 0, until: 0 };

/** The month of a time, in UTC: "2026-11". */
export function periodOf(timeMs: number): string {
  if (timeMs < cachedMonth.from || timeMs >= cachedMonth.until) {
    const date = new Date(timeMs);
    const begin = (months: number) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months);
    cachedMonth = { period: date.toISOString().slice(0, 7), from: begin(0), until: begin(1) };
  }
  return cachedMonth.period;
}

/** Milliseconds since 1970 at which the month begins. */
export function periodStart(period: string): number {
  return Date.parse(`${period}-01T00:00:00Z`);
}
