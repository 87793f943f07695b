/** Each given field must match. */
export interface HistoryFilter {
  readonly organizationId?: string;
  readonly objectId?: string;
  /** Of an audit entry. */
  readonly actor?: string;
  /** Type of an event, action of an audit entry. */
  readonly type?: string;
  /** One of these. */
  readonly types?: readonly string[];
  /** Milliseconds since 1970; inclusive. */
  readonly since?: number;
  /** Exclusive. */
  readonly until?: number;
}

export interface HistoryPage {
  /** `next` of the page before. */
  readonly after: string | undefined;
  readonly limit: number;
  readonly order: "newest first" | "oldest first";
}

export interface HistoryResult<T> {
  readonly items: T[];
  /** The cursor of the next page: undefined without rows. An oldest-first reader keeps it to read later rows. */
  readonly next: string | undefined;
  readonly more: boolean;
}
