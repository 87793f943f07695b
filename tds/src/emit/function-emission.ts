import type { TsqlType } from "../types/tsql-type.ts";
import type { EmitContext, Typed } from "./context.ts";

/** Translation of a T-SQL function; its arguments are already translated to PostgreSQL. */
export interface FunctionEmission {
  readonly minimum: number;
  readonly maximum: number;
  emit(list: readonly Typed[], context: EmitContext): { readonly sql: string; readonly type: TsqlType };
}
