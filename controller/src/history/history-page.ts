/** Each given field must match. */
export interface HistoryFilter {
  readonly organizationId?: string;
  readonly objectId?: string;
  /** Of an audit entry. */
  readonly actor?: string;
  /** Type of an event, action of an audit entry. */
  readonly type?: string;
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
  /** Where to go on: undefined when there was nothing. An oldest-first reader keeps it to see what comes later. */
  readonly next: string | undefined;
  readonly more: boolean;
}
