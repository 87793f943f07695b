/** Filter of events and audit entries: an entry must match every field that is set. */
export interface HistoryFilter {
  readonly organizationId?: string;
  readonly objectId?: string;
  /** Matches events only: events of the service, and events of other objects that name it as `service_id`. */
  readonly serviceId?: string;
  /** Matches audit entries only. */
  readonly actor?: string;
  /** Type of an event, or action of an audit entry, with or without the code of a refusal. */
  readonly type?: string;
  /** Types of events, or actions of audit entries: one of them must match. */
  readonly types?: readonly string[];
  /** Milliseconds since 1970; inclusive. */
  readonly since?: number;
  /** Exclusive. */
  readonly until?: number;
}

export interface HistoryPage {
  /** `next` of the previous page; undefined for the first page. */
  readonly after: string | undefined;
  readonly limit: number;
  readonly order: "newest first" | "oldest first";
}

export interface HistoryResult<T> {
  readonly items: T[];
  /** The cursor of the next page; undefined without rows. An oldest-first reader uses it to poll for later rows. */
  readonly next: string | undefined;
  readonly more: boolean;
}
