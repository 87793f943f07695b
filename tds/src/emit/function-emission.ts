import type { TsqlType } from "../types/tsql-type.ts";
import type { EmitContext, Typed } from "./context.ts";

/** A function of T-SQL: its arguments are in the dialect of PostgreSQL already. */
export interface FunctionEmission {
  readonly minimum: number;
  readonly maximum: number;
  emit(list: readonly Typed[], context: EmitContext): { readonly sql: string; readonly type: TsqlType };
}
