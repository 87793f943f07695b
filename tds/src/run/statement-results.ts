import type { Column, ServerMessage } from "../protocol/token.ts";
import type { Value } from "../types/tsql-type.ts";
import type { SqlError } from "./sql-error.ts";

/** End of a statement; a row count is that of a statement that reads or changes rows. */
export interface Done {
  readonly command?: number;
  readonly rowCount?: number;
  readonly isError?: boolean;
}

/** Receiver of what statements return: the client, or the INSERT ... EXEC around them. */
export interface StatementResults {
  message(message: ServerMessage): void;
  error(error: SqlError): void;
  columns(columns: readonly Column[]): void;
  /** False if the caller must await `drained` before the next row. */
  row(columns: readonly Column[], row: readonly Value[]): boolean;
  drained(): Promise<void>;
  /** End of a statement. */
  done(done: Done): void;
  transactionChange(type: "beginTransaction" | "commitTransaction" | "rollbackTransaction", descriptor: bigint): void;
}
