import type { Execute } from "../parse/ast.ts";
import type { TsqlType, Value } from "../types/tsql-type.ts";
import type { Frame } from "./frame.ts";
import type { Results } from "./results.ts";
import type { Session } from "./session.ts";

export interface EvaluatedArgument {
  readonly name: string | undefined;
  /** Of an OUTPUT argument, type and value of its parameter after the call. */
  type: TsqlType;
  value: Value;
  readonly isOutput: boolean;
}

/** Runs a procedure by its name and returns its status. */
export type CallProcedure = (call: Execute, list: readonly EvaluatedArgument[], run: Run) => Promise<number>;

/** All that the statements of one request share. */
export interface Run {
  readonly session: Session;
  readonly results: Results;
  readonly frame: Frame;
  readonly signal: AbortSignal;
  readonly call: CallProcedure;
}
