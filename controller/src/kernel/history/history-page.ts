/** Every field that is set must match. */
export interface HistoryFilter {
  readonly organizationId?: string;
  readonly objectId?: string;
  /** Matches events only: those whose object is the service, and those that name it as `service_id`. */
  readonly serviceId?: string;
  /** Matches audit entries only. */
  readonly actor?: string;
  /** Type of an event, or action of an audit entry. */
  readonly type?: string;
  /** Any of these types. */
  readonly types?: readonly string[];
  /** Milliseconds since 1970; inclusive. */
  readonly since?: number;
  /** Exclusive. */
  readonly until?: number;
}

export interface HistoryPage {
  /** `next` of the previous page. */
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
