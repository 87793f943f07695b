import { objectName, qualified, quoteName, temporarySchema } from "../bind/object-name.ts";
import type { EmitContext, EmittedQuery, OutputColumn } from "../emit/context.ts";
import { type EmittedDml, emitDelete, emitInsert, emitMerge, emitOutputInto, emitUpdate } from "../emit/dml.ts";
import { emitQuery } from "../emit/queries.ts";
import type { ColumnDefinition, Dml, Path, Query, Select } from "../parse/ast.ts";
import { type Column, commands } from "../protocol/token.ts";
import { columnType, typeOfOid } from "../types/backend-type.ts";
import type { Value } from "../types/tsql-type.ts";
import type { FieldDef, RowReceiver } from "./backend.ts";
import { createTable } from "./definitions.ts";
import { nameStatement } from "./errors.ts";
import type { RequestContext } from "./request-context.ts";
import { SqlError } from "./sql-error.ts";

/** Runs a query, INSERT, UPDATE, DELETE or MERGE; the rows go to the client, into variables, or into a table. */
export async function runDml(statement: Dml, line: number, request: RequestContext): Promise<void> {
  const { session, frame, results } = request;
  await session.loadTables(statement, frame);
  const context = session.context(frame);
  if (statement.kind === "query") {
    const select = statement.body.kind === "select" ? statement.body : undefined;
    const into = select?.into ?? intoOf(statement);
    if (into !== undefined) {
      await selectInto(statement, into, line, request);
      return;
    }
    const emitted = emitQuery(statement, context);
    if (select?.items.some(({ variable }) => variable !== undefined) === true) {
      await assignRows(select, emitted, context.values, request);
      return;
    }
    const sql = session.options.fmtOnly ? `SELECT * FROM (${emitted.sql}) AS q LIMIT 0` : emitted.sql;
    const { rowCount } = await send({ ...emitted, sql }, context.values, 0, request);
    session.rowCount = rowCount;
    results.done({ command: commands.select, rowCount });
    return;
  }
  const changed = emitDml(statement, context);
  const into = statement.output?.into;
  const emitted = into === undefined ? changed : emitOutputInto(changed, into, context);
  const { variables = [] } = emitted;
  const hidden = variables.length + (emitted.hasIdentity ? 1 : 0);
  const { rowCount, last } = await send(emitted, context.values, hidden, request).catch((error: unknown) => {
    nameStatement(error, { kind: statement.kind, databases: session });
    throw error;
  });
  const identity = emitted.hasIdentity ? last?.at(-1) : undefined;
  if (statement.kind === "insert" && identity != null) {
    session.lastIdentity = identity;
    session.scopeIdentity = identity;
  }
  if (last !== undefined) assignVariables(variables, last, request);
  if (emitted.reseed !== undefined) await session.backend.query(emitted.reseed);
  session.rowCount = rowCount;
  if (session.options.noCount && emitted.columns.length === 0) return;
  results.done({ command: commands[statement.kind], rowCount });
}

function emitDml(statement: Exclude<Dml, Query>, context: EmitContext): EmittedDml {
  switch (statement.kind) {
    case "insert":
      return emitInsert(statement, context);
    case "update":
      return emitUpdate(statement, context);
    case "delete":
      return emitDelete(statement, context);
    case "merge":
      return emitMerge(statement, context);
  }
}

/** Target of SELECT INTO, which in a UNION is in the first SELECT. */
function intoOf({ body }: Query): Path | undefined {
  let first = body;
  while (first.kind === "setOperation") first = first.left;
  return first.kind === "select" ? first.into : undefined;
}

/** Sends the rows to the client without their last, hidden columns, whose values in the last row are returned. */
async function send(emitted: EmittedQuery, values: readonly Value[], hidden: number, request: RequestContext) {
  const { session, results } = request;
  let columns: readonly Column[] = [];
  let last: readonly Value[] | undefined;
  const visible = emitted.columns.length;
  const receiver: RowReceiver = {
    fields(fields) {
      columns = columnsOf(emitted.columns, hidden > 0 ? fields.slice(0, -hidden) : fields);
      if (columns.length > 0) results.columns(columns);
    },
    row(row) {
      if (hidden > 0) {
        last = row.slice(-hidden);
        if (visible === 0) return true;
      }
      return results.row(columns, hidden > 0 ? row.slice(0, -hidden) : row);
    },
    drained: () => results.drained(),
  };
  const { rowCount } = await session.backend.stream(emitted.sql, values, receiver);
  return { rowCount, last };
}

/** Columns by PostgreSQL's result types, for a cached definition that is older than the table. */
function columnsOf(expected: readonly OutputColumn[], fields: readonly FieldDef[]): Column[] {
  if (expected.length === fields.length) return [...expected];
  return fields.map(({ name, dataTypeID, dataTypeModifier }) => ({
    name,
    type: typeOfOid(dataTypeID, dataTypeModifier),
    isNullable: true,
  }));
}

/** Runs `SELECT @a = x`: variables get the values of the last row, and are unchanged without rows. */
async function assignRows(
  select: Select,
  emitted: EmittedQuery,
  values: readonly Value[],
  request: RequestContext,
): Promise<void> {
  const { session } = request;
  let last: readonly Value[] | undefined;
  let rowCount = 0;
  await session.backend.stream(emitted.sql, values, {
    fields() {},
    row(row) {
      last = row;
      rowCount += 1;
      return true;
    },
    drained: () => Promise.resolve(),
  });
  session.rowCount = rowCount;
  if (last === undefined) return;
  const names = select.items.map(({ variable = "" }) => variable);
  assignVariables(names, last, request);
}

function assignVariables(names: readonly string[], values: readonly Value[], { frame }: RequestContext): void {
  for (const [index, name] of names.entries()) {
    const variable = frame.variables.get(name.toLowerCase());
    if (variable === undefined)
      throw new SqlError(137, `Must declare the scalar variable "${name}".`, { severity: 15 });
    variable.value = cut(values[index] ?? null, variable.type.length);
  }
}

function cut(value: Value, length: number | "max" | undefined): Value {
  return value !== null && typeof length === "number" && !value.startsWith("\\x") ? value.slice(0, length) : value;
}

async function selectInto(query: Query, into: Path, line: number, request: RequestContext): Promise<void> {
  const { session, frame, results } = request;
  const context = session.context(frame);
  const emitted = emitQuery(query, context);
  const name = objectName(into, session, line);
  const definitions = emitted.columns.map((column): ColumnDefinition => {
    if (column.name === "")
      throw new SqlError(1038, "Each column of SELECT INTO must have a name. Add an alias.", { line });
    return {
      name: column.name,
      type: column.type,
      isNullable: column.isNullable,
      identity: undefined,
      default: undefined,
      computed: undefined,
      constraints: [],
    };
  });
  await createTable(name, definitions, [], request);
  const target = name.schema === temporarySchema ? quoteName(name.name) : qualified(name);
  const alias = quoteName(":into");
  const columns = definitions.map((_, index) => `c${index}`);
  const list = emitted.columns.map(({ type }, index) => `c${index}::${columnType(type).sql}`);
  const sql = `INSERT INTO ${target} SELECT ${list.join(", ")} FROM (${emitted.sql}) AS ${alias} (${columns.join(", ")})`;
  const { rowCount } = await send({ sql, columns: [] }, context.values, 0, request);
  session.rowCount = rowCount;
  results.done({ command: commands.select, rowCount });
}
