/** Lines of engines' logs. Times are RFC 3339 texts in UTC. */

/** Least severe first. */
export type LogLevel = "debug" | "info" | "warning" | "error";

/** A line of an engine's log. */
export interface LogLine {
  readonly time: string;
  readonly node_id: string;
  readonly component: string;
  readonly level: LogLevel;
  readonly message: string;
}

/** A line must have all that is given. */
export interface LogFilter {
  readonly since?: string | undefined;
  /** Lines of this level and above. */
  readonly level?: LogLevel | undefined;
}

/** Lines, oldest first. */
export interface LogPage {
  readonly lines: readonly LogLine[];
  /** Where to go on, also when there is no more yet. */
  readonly next_cursor: string;
  readonly has_more: boolean;
}
