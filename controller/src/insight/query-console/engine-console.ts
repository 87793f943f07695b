import type { SchemaTable } from "./schema-table.ts";

/** Grammar and dialect of one engine in the query console. */
export interface EngineConsole {
  /** The program of the guard's thread, which calls `serveGuard`: it decides which statements only read. */
  readonly guardWorker: URL;
  /**
   * Returns the statement that reads the tables that a model may use. Tables that match words of the question are
   * first.
   */
  schemaSql(question: string): string;
  /** The tables in that statement's rows. */
  tablesOf(rows: readonly (readonly unknown[])[]): SchemaTable[];
  /** Returns a statement that resolves every name of `sql` without running it; undefined if there is none. */
  explain(sql: string): string | undefined;
}
