import type { Query } from "../parse/ast.ts";
import type { Column } from "../protocol/token.ts";
import type { TableVariable, Variable } from "../emit/context.ts";

/** A cursor of T-SQL; open ones are cursors of PostgreSQL that hold the rows of their query. */
export interface Cursor {
  readonly query: Query;
  /** Quoted name in PostgreSQL. */
  readonly name: string;
  /** Columns of its rows; undefined while it is closed. */
  columns: readonly Column[] | undefined;
}

/** The variables of one batch, call or text of dynamic SQL, by their names in lower case. */
export interface CallFrame {
  readonly variables: Map<string, Variable>;
  readonly tableVariables: Map<string, TableVariable>;
  /** Names of the temporary tables that its statements created. */
  readonly temporaryTables: Set<string>;
  /** LOCAL cursors by their names in lower case. */
  readonly cursors: Map<string, Cursor>;
  /** Number of calls around it. */
  readonly depth: number;
  /** Name of the procedure; undefined in a batch. */
  readonly procedure: string | undefined;
}

export function newCallFrame(depth = 0, procedure?: string): CallFrame {
  return {
    variables: new Map(),
    tableVariables: new Map(),
    temporaryTables: new Set(),
    cursors: new Map(),
    depth,
    procedure,
  };
}
