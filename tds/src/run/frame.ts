import type { TableVariable, Variable } from "../emit/context.ts";

/** The variables of one batch, call or text of dynamic SQL, by their names in lower case. */
export interface Frame {
  readonly variables: Map<string, Variable>;
  readonly tableVariables: Map<string, TableVariable>;
  /** Number of calls around it. */
  readonly depth: number;
}

export function newFrame(depth = 0): Frame {
  return { variables: new Map(), tableVariables: new Map(), depth };
}
