import type { TableVariable } from "../emit/context.ts";
import type { Execute } from "../parse/ast.ts";
import type { SentTable } from "../protocol/table-value.ts";
import type { TsqlType, Value } from "../types/tsql-type.ts";
import type { CallFrame } from "./call-frame.ts";
import type { StatementResults } from "./results.ts";
import type { Session } from "./session.ts";

export interface EvaluatedArgument {
  readonly name: string | undefined;
  /** Type and value of the argument; after a call, an OUTPUT argument has the value of its parameter. */
  type: TsqlType;
  value: Value;
  readonly isOutput: boolean;
  /** True for the word DEFAULT in place of a value. */
  readonly isDefault?: boolean;
  /** Rows of a table-valued parameter of an RPC message, or the table variable of EXECUTE. */
  readonly table?: SentTable | TableVariable;
}

/** Runs a procedure by its name and returns its status. */
export type CallProcedure = (
  call: Execute,
  list: readonly EvaluatedArgument[],
  request: RequestContext,
) => Promise<number>;

/** Session, results, variables and cancellation of one request, which all of its statements share. */
export interface RequestContext {
  readonly session: Session;
  readonly results: StatementResults;
  readonly frame: CallFrame;
  readonly signal: AbortSignal;
  readonly call: CallProcedure;
}
