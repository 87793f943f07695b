import type { LogLine } from "./answers.ts";

/** Lines, oldest first. */
export interface LogPage {
  readonly lines: readonly LogLine[];
  /** Where to go on, also when there is no more yet. */
  readonly next_cursor: string;
  readonly has_more: boolean;
}
