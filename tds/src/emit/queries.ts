import { qualified, quoteName } from "../bind/object-name.ts";
import { type ColumnSource, matches, Scope, type Source } from "../bind/scope.ts";
import type { TableDefinition } from "../catalog/table-catalog.ts";
import type { CommonTable, Query, QueryBody, Select, SelectItem, TableSource, Top } from "../parse/ast.ts";
import { refuse } from "../parse/features.ts";
import { SqlError } from "../run/sql-error.ts";
import { castType } from "../types/backend-type.ts";
import { commonType, isCharacter, type TsqlType } from "../types/tsql-type.ts";
import type { EmitContext, EmittedQuery, OutputColumn, Typed } from "./context.ts";
import { castTo, collatedLike, implicitly } from "./conversions.ts";
import { emitExpression, emitOrder, emitPredicate } from "./expressions.ts";
import { emitRowFormat } from "./row-format.ts";
import { emitTableCall } from "./user-functions.ts";

export function emitQuery(query: Query, context: EmitContext, outer?: Scope): EmittedQuery {
  const common = emitCommonTables(query.with, context);
  const { sql, columns, scope } = emitBody(query.body, context, outer);
  const order = query.orderBy.map((item) => {
    const { expression } = item;
    // The columns of a UNION may have the names of the tables of its first part.
    const isAny = scope === undefined && query.body.kind === "setOperation";
    const isNamed = expression.kind === "column" && (isAny || expression.path.length === 1);
    const alias = isNamed ? expression.path.at(-1) : undefined;
    const isAlias = columns.some(({ name }) => name !== "" && name.toLowerCase() === alias?.toLowerCase());
    const isPosition = expression.kind === "literal";
    if (alias !== undefined && isAlias && !isColumnOf(alias, scope))
      return outputOrder(quoteName(alias.toLowerCase()), item.isDescending);
    if (isPosition) return outputOrder(expression.value ?? "NULL", item.isDescending);
    return emitOrder(item, scope ?? new Scope(outer), context);
  });
  const top = query.body.kind === "select" ? query.body.top : undefined;
  const parts = [
    common,
    sql,
    order.length === 0 ? "" : `ORDER BY ${order.join(", ")}`,
    query.offset === undefined ? "" : `OFFSET (${emitExpression(query.offset, new Scope(outer), context).sql})::int8`,
    query.fetch === undefined ? "" : `LIMIT (${emitExpression(query.fetch, new Scope(outer), context).sql})::int8`,
    top === undefined ? "" : emitTop(top, context, outer),
  ];
  const emitted = { sql: parts.filter((part) => part !== "").join(" "), columns };
  if (query.format === undefined) return emitted;
  const from = query.body.kind === "select" ? query.body.from : [];
  return emitRowFormat(emitted, query.format, new Map(from.flatMap(writtenNames)));
}

/** Names in FROM as they are written, by those in lower case. */
function writtenNames(source: TableSource): [string, string][] {
  if (source.kind === "join") return [...writtenNames(source.left), ...writtenNames(source.right)];
  const own = source.kind === "table" ? source.path.at(-1) : source.kind === "tableVariable" ? source.name : undefined;
  const name = source.alias ?? own ?? "";
  return [[name.toLowerCase(), name]];
}

function outputOrder(sql: string, isDescending: boolean): string {
  return `${sql}${isDescending ? " DESC NULLS LAST" : " NULLS FIRST"}`;
}

/** True if a source of the query has a column of this name. */
function isColumnOf(name: string, scope: Scope | undefined): boolean {
  const folded = name.toLowerCase();
  return scope?.sources.some(({ columns }) => columns?.some((column) => column.name === folded) === true) === true;
}

export function emitTop(top: Top, context: EmitContext, outer?: Scope): string {
  if (top.isPercent) throw refuse("TOP ... PERCENT", 0);
  const value = emitExpression(top.count, new Scope(outer), context);
  if (value.isNull === true)
    throw new SqlError(
      1060,
      "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.",
    );
  const count = `(${value.sql})::int8`;
  return top.withTies ? `FETCH FIRST (${count}) ROWS WITH TIES` : `LIMIT ${count}`;
}

/** Tables of WITH are added to the context, and their text precedes the statement. */
export function emitCommonTables(common: readonly CommonTable[], context: EmitContext): string {
  if (common.length === 0) return "";
  const texts = common.map(({ name, columns, query }) => {
    const folded = name.toLowerCase();
    const first = query.body.kind === "setOperation" ? query.body.left : undefined;
    if (first !== undefined) {
      // The first part of a recursive table determines its columns, to which the second part refers.
      const { columns: own } = emitQuery({ ...query, body: first, orderBy: [] }, context);
      context.common.set(folded, commonTable(folded, own, columns));
    }
    const { sql, columns: own } = emitQuery(query, context);
    context.common.set(folded, commonTable(folded, own, columns));
    const names = commonTable(folded, own, columns).columns.map((column) => quoteName(column.name));
    return `${quoteName(folded)} (${names.join(", ")}) AS (${sql})`;
  });
  return `WITH RECURSIVE ${texts.join(", ")}`;
}

function commonTable(name: string, own: readonly OutputColumn[], names: readonly string[]): TableDefinition {
  return { schema: "", name, columns: sourceColumns(own, names, name), primaryKey: [] };
}

/** The columns of a derived table; each needs a name. */
function sourceColumns(own: readonly OutputColumn[], names: readonly string[], alias: string): ColumnSource[] {
  return own.map(({ name, type, isNullable }, index) => {
    const spelling = names[index] ?? name;
    if (spelling === "") {
      const message = `Column ${index + 1} of '${alias}' has no name.`;
      throw new SqlError(8155, message);
    }
    return { name: spelling.toLowerCase(), spelling, type, isNullable };
  });
}

interface EmittedBody extends EmittedQuery {
  /** The sources of a single SELECT, for its ORDER BY. */
  readonly scope: Scope | undefined;
}

function emitBody(body: QueryBody, context: EmitContext, outer?: Scope, isOperand = false): EmittedBody {
  switch (body.kind) {
    case "select":
      return emitSelect(body, context, outer, isOperand);
    case "nested": {
      const { sql, columns } = emitQuery(body.query, context, outer);
      return { sql: `(${sql})`, columns, scope: undefined };
    }
    case "setOperation": {
      const left = emitOperand(body.left, context, outer);
      const right = emitOperand(body.right, context, outer);
      if (left.columns.length !== right.columns.length) {
        const message = "All queries combined by UNION, INTERSECT or EXCEPT must have the same number of columns.";
        throw new SqlError(205, message);
      }
      const columns = left.columns.map((leftColumn, index) => {
        const { isPlain: _, ...column } = leftColumn;
        const rightColumn = right.columns[index] ?? column;
        const isNullable = column.isNullable || rightColumn.isNullable;
        const isNull = column.isNull === true && rightColumn.isNull === true;
        const type = unionType(column, rightColumn);
        return { ...column, type, isNullable, isIdentity: false, isNull };
      });
      // The collation of one part is that of both.
      const isPlain = left.columns.map((column, index) => column.isPlain && right.columns[index]?.isPlain);
      const first = convertColumns(left, columns, context, isPlain);
      const second = convertColumns(right, columns, context, []);
      return { sql: `${first} ${body.operator} ${second}`, columns, scope: undefined };
    }
  }
}

function unionType(left: OutputColumn, right: OutputColumn): TsqlType {
  if (left.isNull === true) return right.type;
  return right.isNull === true ? left.type : commonType(left.type, right.type);
}

/** The text of a part of a UNION whose columns have the common types; PostgreSQL converts fewer of them itself. */
function convertColumns(
  part: EmittedBody,
  columns: readonly OutputColumn[],
  context: EmitContext,
  isPlain: readonly (boolean | undefined)[],
): string {
  const alias = context.freshAlias();
  const values = part.columns.map(({ type, isNull = false }, index) => {
    const sql = `${alias}.c${index}`;
    const target = columns[index]?.type ?? type;
    if (isNull) return target.name === type.name ? sql : `NULL::${castType(target)}`;
    const value = implicitly({ sql, type, isCollated: isPlain[index] !== true }, target);
    return collatedText(value, context);
  });
  if (values.every((sql, index) => sql === `${alias}.c${index}`)) return part.sql;
  const names = part.columns.map((_, index) => `c${index}`);
  const list = values.map((sql, index) => {
    const { name = "" } = columns[index] ?? {};
    return name === "" ? sql : `${sql} AS ${quoteName(name.toLowerCase())}`;
  });
  return `SELECT ${list.join(", ")} FROM (${part.sql}) AS ${alias} (${names.join(", ")})`;
}

/** Emits a part of a UNION, EXCEPT or INTERSECT, whose TOP applies to that part only. */
function emitOperand(body: QueryBody, context: EmitContext, outer?: Scope): EmittedBody {
  const emitted = emitBody(body, context, outer, true);
  if (body.kind !== "select" || body.top === undefined) return emitted;
  return { ...emitted, sql: `(${emitted.sql} ${emitTop(body.top, context, outer)})` };
}

function emitSelect(select: Select, context: EmitContext, outer: Scope | undefined, isOperand: boolean): EmittedBody {
  const scope = new Scope(outer);
  const from = select.from.map((source) => emitSource(source, scope, context)).join(", ");
  const items = select.items.flatMap((item) => emitItem(item, scope, context, isOperand));
  const group = select.groupBy.map((expression) => emitExpression(expression, scope, context).sql);
  const parts = [
    `SELECT ${select.isDistinct ? "DISTINCT " : ""}${items.map(({ sql }) => sql).join(", ")}`,
    from === "" ? "" : `FROM ${from}`,
    select.where === undefined ? "" : `WHERE ${emitPredicate(select.where, scope, context)}`,
    group.length === 0 ? "" : `GROUP BY ${group.join(", ")}`,
    select.having === undefined ? "" : `HAVING ${emitPredicate(select.having, scope, context)}`,
  ];
  return {
    sql: parts.filter((part) => part !== "").join(" "),
    columns: items.map(({ column }) => column),
    scope,
  };
}

interface EmittedItem {
  readonly sql: string;
  readonly column: OutputColumn;
}

/**
 * An item of a select list or of OUTPUT; a star is expanded to an item for each column. In an operand of UNION texts
 * without a collation remain so, since the other operand may have one.
 */
export function emitItem(
  { expression, alias }: SelectItem,
  scope: Scope,
  context: EmitContext,
  isOperand = false,
): EmittedItem[] {
  if (expression.kind === "star") {
    const qualifier = expression.path.at(-1)?.toLowerCase();
    const sources = scope.sources.filter((source) => qualifier === undefined || matches(source, qualifier));
    if (sources.length === 0) {
      const message =
        qualifier === undefined
          ? "Must specify table to select from."
          : `The column prefix '${qualifier}' does not match with a table name or alias name used in the query.`;
      throw new SqlError(qualifier === undefined ? 263 : 107, message);
    }
    return sources.flatMap(starItems);
  }
  const typed = emitExpression(expression, scope, context);
  const name = alias ?? (expression.kind === "column" ? (expression.path.at(-1) ?? "") : "");
  const collated = isOperand ? typed.sql : collatedText(typed, context);
  const sql = typed.isNull === true ? castTo(typed, typed.type).sql : collated;
  return [
    {
      sql: name === "" ? sql : `${sql} AS ${quoteName(name.toLowerCase())}`,
      column: outputColumn(name, typed),
    },
  ];
}

/** A text that has no collation gets that of the service, in which outer queries then compare it. */
function collatedText({ sql, type, isCollated, isNull }: Typed, context: EmitContext): string {
  const isPlain = isCharacter(type) && type.name !== "xml" && !isCollated && isNull !== true;
  return isPlain ? `(${sql} ${context.collate(type)})` : sql;
}

function outputColumn(name: string, { type, column, isJson, isNull, isCollated }: Typed): OutputColumn {
  const isNullable = column?.isNullable ?? true;
  return {
    name,
    type,
    isNullable,
    isIdentity: column?.isIdentity ?? false,
    ...(isCharacter(type) && !isCollated && { isPlain: true }),
    ...(isJson === true && { isJson }),
    ...(isNull === true && { isNull }),
    ...(column !== undefined && { source: column.source }),
  };
}

function starItems(source: Source): EmittedItem[] {
  if (source.columns === undefined) throw refuse("* of a function", 0);
  return source.columns.map(({ name, spelling, type, isNullable, isIdentity = false }) => ({
    sql: `${quoteName(source.text ?? source.alias)}.${quoteName(name)}`,
    column: { name: spelling, type, isNullable, isIdentity, source: source.alias },
  }));
}

/** Emits a source of FROM and adds it to the scope, before the sources to its right. */
export function emitSource(source: TableSource, scope: Scope, context: EmitContext): string {
  switch (source.kind) {
    case "table": {
      const table = context.table(source.path, source.line);
      const name = source.alias ?? source.path.at(-1) ?? "";
      return tableText(table, { name, isOwn: source.alias === undefined, ...joinedName(source, context) }, scope);
    }
    case "tableVariable": {
      const table = context.tableVariable(source.name, 0);
      const name = source.alias ?? source.name;
      return tableText(table, { name, isOwn: false, ...joinedName(source, context) }, scope);
    }
    case "derived": {
      const { sql, columns } = emitQuery(source.query, context, scope);
      const alias = source.alias.toLowerCase();
      const derivedColumns = sourceColumns(columns, source.columns, source.alias);
      scope.add({ alias, object: undefined, columns: derivedColumns });
      return `(${sql}) AS ${quoteName(alias)} (${derivedColumns.map(({ name }) => quoteName(name)).join(", ")})`;
    }
    case "values": {
      const alias = source.alias.toLowerCase();
      const rows = source.rows.map((row) => row.map((value) => emitExpression(value, scope, context)));
      const [first = []] = rows;
      const derivedColumns = first.map(({ type }, index) => {
        const spelling = source.columns[index] ?? `column${index + 1}`;
        return { name: spelling.toLowerCase(), spelling, type, isNullable: true };
      });
      scope.add({ alias, object: undefined, columns: derivedColumns });
      const isPlain = first.map((_, index) => rows.every((row) => row[index]?.isCollated !== true));
      const rowText = (row: readonly Typed[]) =>
        `(${row.map((value, index) => (isPlain[index] === true ? collatedText(value, context) : value.sql)).join(", ")})`;
      const text = rows.map(rowText).join(", ");
      return `(VALUES ${text}) AS ${quoteName(alias)} (${derivedColumns.map(({ name }) => quoteName(name)).join(", ")})`;
    }
    case "function":
      return emitRowset(source, scope, context);
    case "join":
      return emitJoin(source, scope, context);
  }
}

/** Another name in the text for PostgreSQL, for the target of a change. */
function joinedName(source: TableSource, { joinedTarget }: EmitContext): { readonly text?: string } {
  return joinedTarget?.source === source ? { text: joinedTarget.alias } : {};
}

interface WrittenName {
  readonly name: string;
  /** True for the table's own name, false for an alias. */
  readonly isOwn: boolean;
  readonly text?: string;
}

function tableText(table: TableDefinition, { name: written, isOwn, text }: WrittenName, scope: Scope): string {
  const alias = written.toLowerCase();
  scope.add({ alias, object: isOwn ? alias : undefined, columns: table.columns, ...(text !== undefined && { text }) });
  const name = table.text ?? (table.schema === "" ? quoteName(table.name) : qualified(table));
  return `${name} AS ${quoteName(text ?? alias)}`;
}

/** Table functions of T-SQL; others are functions that users created. */
export const builtInRowsets: readonly string[] = ["STRING_SPLIT", "GENERATE_SERIES", "FN_HELPCOLLATIONS"];

/** Rowset functions with the columns of their rows. */
function emitRowset(source: Extract<TableSource, { kind: "function" }>, scope: Scope, context: EmitContext): string {
  const name = (source.call.path.at(-1) ?? "").toUpperCase();
  const isOfSystem = source.call.path.length === 1 || source.call.path[0]?.toLowerCase() === "sys";
  if (!isOfSystem || !builtInRowsets.includes(name)) {
    const called = emitTableCall(source.call, scope, context);
    const quoted = (source.alias ?? source.call.path.at(-1) ?? "").toLowerCase();
    const columns = called.columns.map((column, index) => {
      const spelling = source.columns[index];
      return spelling === undefined ? column : { ...column, name: spelling.toLowerCase(), spelling };
    });
    scope.add({ alias: quoted, object: undefined, columns });
    return `${called.sql} AS ${quoteName(quoted)} (${columns.map((column) => quoteName(column.name)).join(", ")})`;
  }
  const typed = source.call.arguments.map((argument) => emitExpression(argument, scope, context));
  const list = typed.map(({ sql }) => sql);
  const alias = (source.alias ?? name).toLowerCase();
  const [first, second] = list;
  if (name === "FN_HELPCOLLATIONS") {
    const text = (spelling: string) => ({
      name: spelling,
      spelling,
      type: { name: "nvarchar" as const, length: 1_000 },
    });
    const columns = ["name", "description"].map((spelling) => ({ ...text(spelling), isNullable: false }));
    scope.add({ alias, object: undefined, columns });
    const values = ["name", "description"].map(
      (column) => `c.${column} ${context.collate({ name: "nvarchar" })} AS ${column}`,
    );
    return `(SELECT ${values.join(", ")} FROM holdfast_tsql.collation AS c) AS ${quoteName(alias)}`;
  }
  if (first === undefined) throw refuse("built-in functions", source.call.line, source.call.path.join("."));
  switch (name) {
    case "STRING_SPLIT": {
      const type = collatedLike({ name: "nvarchar", length: "max" }, typed[0]?.type ?? { name: "nvarchar" });
      scope.add({ alias, object: undefined, columns: [{ name: "value", spelling: "value", type, isNullable: false }] });
      const split = `string_to_table((${first})::text COLLATE "C", (${second})::text)`;
      const collated = `SELECT s.v ${context.collate(type)} FROM ${split} AS s (v)`;
      return `(${collated}) AS ${quoteName(alias)} ("value")`;
    }
    case "GENERATE_SERIES": {
      const value: ColumnSource = { name: "value", spelling: "value", type: { name: "int" }, isNullable: false };
      scope.add({ alias, object: undefined, columns: [value] });
      return `generate_series(${list.join(", ")}) AS ${quoteName(alias)} ("value")`;
    }
    default:
      throw refuse("built-in functions", source.call.line, name);
  }
}

function emitJoin(join: Extract<TableSource, { kind: "join" }>, scope: Scope, context: EmitContext): string {
  const left = emitSource(join.left, scope, context);
  const right = emitSource(join.right, scope, context);
  const nested = join.right.kind === "join" ? `(${right})` : right;
  switch (join.type) {
    case "CROSS":
      return `${left} CROSS JOIN ${nested}`;
    case "CROSS APPLY":
      return `${left} CROSS JOIN LATERAL ${nested}`;
    case "OUTER APPLY":
      return `${left} LEFT JOIN LATERAL ${nested} ON true`;
    default: {
      const on = join.on === undefined ? "true" : emitPredicate(join.on, scope, context);
      return `${left} ${join.type} JOIN ${nested} ON ${on}`;
    }
  }
}
