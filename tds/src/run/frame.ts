import type { TableVariable, Variable } from "../emit/context.ts";

/** The variables of one batch, call or text of dynamic SQL, by their names in lower case. */
export interface Frame {
  readonly variables: Map<string, Variable>;
  readonly tableVariables: Map<string, TableVariable>;
  /** Names of the temporary tables that its statements created. */
  readonly temporaryTables: Set<string>;
  /** Number of calls around it. */
  readonly depth: number;
  /** Name of the procedure; undefined in a batch. */
  readonly procedure: string | undefined;
}

export function newFrame(depth = 0, procedure?: string): Frame {
  return { variables: new Map(), tableVariables: new Map(), temporaryTables: new Set(), depth, procedure };
}
