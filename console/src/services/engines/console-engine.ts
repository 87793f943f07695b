import type { Connection } from "@holdfast/sdk/responses.ts";

/** A program in one language that connects to a service, without the password. */
export interface Snippet {
  readonly title: string;
  readonly text: string;
}

/** The parts of the console that differ between engines. */
export interface ConsoleEngine {
  readonly snippets: (connection: Connection) => readonly Snippet[];
  /** The first statement of the query console; absent for an engine without one. */
  readonly firstQuery?: string;
  /** True for an engine whose databases can have queues. */
  readonly hasQueues?: boolean;
}
