import type { Connection } from "@holdfast/sdk/responses.ts";

/** A program in one language that connects to a service, without the password. */
export interface Snippet {
  readonly title: string;
  readonly text: string;
}

/** A dialect of the editor, by its name in CodeMirror. */
export type SqlDialect = "PostgreSQL" | "MySQL" | "StandardSQL";

/** SQL of one engine. */
interface ConsoleSql {
  readonly dialect: SqlDialect;
  /** A statement whose rows are schema, table and column. */
  readonly schemaQuery: string;
  /** The schema whose tables need no prefix. */
  readonly defaultSchema: string;
}

/** The parts of the console that differ between engines. */
export interface ConsoleEngine {
  readonly snippets: (connection: Connection) => readonly Snippet[];
  /** The first statement of the query console; absent for an engine without one. */
  readonly firstQuery?: string;
  /** The syntax of the query console's editor, and the names that it completes; absent for an engine without one. */
  readonly sql?: ConsoleSql;
  /** True for an engine whose databases can have queues. */
  readonly hasQueues?: boolean;
  /** True for an engine with topics and consumer groups. */
  readonly hasTopics?: boolean;
  /** True for an engine with indices of documents. */
  readonly hasIndices?: boolean;
  /** True for an engine that assesses scripts of another one. */
  readonly hasAssessments?: boolean;
}

/** A URI with another parameter, such as the file of the certificate authority, without which clients refuse it. */
export function withParameter(uri: string, parameter: string): string {
  return `${uri}${uri.includes("?") ? "&" : "?"}${parameter}`;
}
