import type { SchemaTable } from "./schema-table.ts";

/** Grammar and dialect of one engine in the query console. */
export interface EngineConsole {
  /** The program of the guard's thread, which calls `serveGuard`: it decides which statements only read. */
  readonly guardWorker: URL;
  /**
   * The statement that reads the tables that a model may use. Tables that match words of the question come first.
   */
  schemaSql(question: string): string;
  /** The tables in that statement's rows. */
  tablesOf(rows: readonly (readonly unknown[])[]): SchemaTable[];
  /** A statement that resolves every name of this one and runs nothing; undefined if there is none. */
  explain(sql: string): string | undefined;
}
