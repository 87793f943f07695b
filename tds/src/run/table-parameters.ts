import type { TableVariable } from "../emit/context.ts";
import { insertColumns } from "../emit/dml.ts";
import type { Parameter } from "../parse/ast.ts";
import type { SentTable } from "../protocol/table-value.ts";
import { type TsqlType, typeText, type UserTypeName } from "../types/tsql-type.ts";
import { createTable, readOnlyError } from "./definitions.ts";
import type { EvaluatedArgument, RequestContext } from "./request-context.ts";
import { RowInsert } from "./row-insert.ts";
import { SqlError } from "./sql-error.ts";

/** Declares a variable of a table type: an empty temporary table, which is dropped at the end of the frame. */
export async function declareTable(
  name: string,
  type: UserTypeName,
  request: RequestContext,
  isReadOnly = false,
): Promise<void> {
  const { session, frame } = request;
  const { columns, constraints } = await session.types.table(type);
  const table = `${name.toLowerCase()}:${session.nextTemporary()}`;
  await createTable({ schema: "pg_temp", name: table, written: name }, columns, constraints, request);
  frame.tableVariables.set(name.toLowerCase(), { name: table, type, isReadOnly });
}

/** Binds a parameter of a table type: to a variable of the caller, or to the rows of the message; else it is empty. */
export async function bindTable(
  { name, isReadOnly }: Pick<Parameter, "name" | "isReadOnly">,
  type: UserTypeName,
  argument: EvaluatedArgument | undefined,
  request: RequestContext,
): Promise<void> {
  if (!isReadOnly) throw readOnlyError(name);
  const { frame, session } = request;
  const table = argument?.table;
  if (argument !== undefined && table === undefined && argument.isDefault !== true && argument.value !== null)
    throw new SqlError(206, `Operand type clash: ${typeText(argument.type)} is incompatible with ${type.name}.`);
  if (table !== undefined && !("rows" in table)) {
    if (table.type?.schema !== type.schema || table.type.name !== type.name) throw clash(table, type.name);
    frame.tableVariables.set(name.toLowerCase(), { ...table, isReadOnly: true, isBorrowed: true });
    return;
  }
  await session.transaction.asOneStatement(async () => {
    await declareTable(name, type, request, true);
    if (table !== undefined && table.rowCount > 0) await insertRows(name, table, request);
  });
}

async function insertRows(name: string, rows: SentTable, { session, frame, signal }: RequestContext): Promise<void> {
  const variable = frame.tableVariables.get(name.toLowerCase());
  const object = { schema: "pg_temp", name: variable?.name ?? "", written: name };
  await session.catalog.load([object]);
  const table = session.context(frame).tableVariable(name, 0);
  if (rows.columnCount !== table.columns.length) {
    const message = `A table-valued parameter has ${rows.columnCount} columns, and its type ${table.columns.length}.`;
    throw new SqlError(500, message);
  }
  const taking = insertColumns(table, [], false);
  const sent = rows.columns.flatMap(({ ordinal, sent: { type } }, index) => {
    const column = table.columns[ordinal];
    return column !== undefined && taking.includes(column) ? [{ column, index, type }] : [];
  });
  const insert = new RowInsert(session.backend, {
    table,
    columns: sent.map(({ column }) => column),
    types: sent.map(({ type }) => type),
  });
  for (const row of rows.rows()) {
    signal.throwIfAborted();
    await insert.add(sent.map(({ index }) => row[index] ?? null));
  }
  await insert.end();
}

/** Error for a table as the argument of another parameter. */
export function typeClash(table: SentTable | TableVariable, type: TsqlType): SqlError {
  return clash(table, typeText(type));
}

function clash(table: SentTable | TableVariable, type: string): SqlError {
  const name = "rows" in table ? (table.type.at(-1) ?? "table") : (table.type?.name ?? "table");
  return new SqlError(206, `Operand type clash: ${name} is incompatible with ${type}.`);
}
