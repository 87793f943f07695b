import { qualified, quoteName } from "../bind/object-name.ts";
import type { ColumnSource, Scope } from "../bind/scope.ts";
import type { UserFunction } from "../catalog/table-catalog.ts";
import type { Call } from "../parse/ast.ts";
import { SqlError } from "../run/sql-error.ts";
import { isCharacter } from "../types/tsql-type.ts";
import type { EmitContext, Typed } from "./context.ts";
import { castTo } from "./conversions.ts";
import { emitExpression } from "./expressions.ts";

/** Call of a scalar function that a user created. */
export function emitScalarCall(call: Call, scope: Scope, context: EmitContext): Typed {
  const found = context.userFunction(call.path, call.line);
  const { returns } = found.definition;
  if (returns.kind !== "scalar") {
    const message = `Cannot find the scalar function "${call.path.join(".")}": it returns a table.`;
    throw new SqlError(4121, message, { line: call.line });
  }
  const sql = callText(found, call, scope, context);
  const { type } = returns;
  return isCharacter(type) && type.name !== "xml"
    ? { sql: `(${sql} ${context.collate(type)})`, type, isCollated: true }
    : { sql, type, isCollated: false };
}

/** Call of a function that returns a table, as a source of FROM, and its columns. */
export function emitTableCall(
  call: Call,
  scope: Scope,
  context: EmitContext,
): { readonly sql: string; readonly columns: readonly ColumnSource[] } {
  const found = context.userFunction(call.path, call.line);
  const { columns } = found;
  if (columns === undefined) {
    const message = `Invalid object name '${call.path.join(".")}': the function returns a single value.`;
    throw new SqlError(208, message, { line: call.line });
  }
  // The columns of a function have no collation of their own in PostgreSQL.
  const list = columns.map(({ name, type }) => {
    const isText = isCharacter(type) && type.name !== "xml";
    return isText ? `(f.${quoteName(name)} ${context.collate(type)}) AS ${quoteName(name)}` : `f.${quoteName(name)}`;
  });
  const sql = `(SELECT ${list.join(", ")} FROM ${callText(found, call, scope, context)} AS f)`;
  return { sql, columns };
}

function callText(
  { name, definition: { parameters } }: UserFunction,
  call: Call,
  scope: Scope,
  context: EmitContext,
): string {
  const title = call.path.join(".");
  if (call.arguments.length < parameters.length)
    throw new SqlError(313, `An insufficient number of arguments were supplied for the function ${title}.`, {
      line: call.line,
    });
  if (call.arguments.length > parameters.length)
    throw new SqlError(8144, `Procedure or function ${title} has too many arguments specified.`, { line: call.line });
  const list = parameters.map((parameter, index) => {
    const argument = call.arguments[index];
    const expression = argument === undefined || argument.kind === "default" ? parameter.default : argument;
    if (expression === undefined)
      throw new SqlError(201, `Procedure or function '${title}' expects parameter '${parameter.name}'.`);
    return castTo(emitExpression(expression, scope, context), parameter.type).sql;
  });
  return `${qualified(name)}(${list.join(", ")})`;
}
