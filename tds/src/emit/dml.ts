import { qualified, quoteName } from "../bind/object-name.ts";
import { type ColumnSource, Scope } from "../bind/scope.ts";
import type { TableDefinition } from "../catalog/table-catalog.ts";
import type {
  Assignment,
  Delete,
  Expression,
  Insert,
  Merge,
  MergeClause,
  Output,
  Predicate,
  Update,
} from "../parse/ast.ts";
import { refuse } from "../parse/features.ts";
import { escapeLiteral } from "../run/backend.ts";
import { SqlError } from "../run/sql-error.ts";
import { type ChangedTarget, emitTarget, targetTable } from "./changed-target.ts";
import type { EmitContext, EmittedQuery, OutputColumn, Typed } from "./context.ts";
import { assignTo } from "./conversions.ts";
import { emitExpression, emitPredicate } from "./expressions.ts";
import { emitCommonTables, emitItem, emitQuery, emitSource, emitTop } from "./queries.ts";

export interface EmittedDml extends EmittedQuery {
  /** True if the last column is the IDENTITY value for SCOPE_IDENTITY(), which is not sent to the client. */
  readonly hasIdentity: boolean;
  /** Variables of SET @variable: their values are the last columns, which are not sent to the client. */
  readonly variables?: readonly string[];
  /** Statement that advances the IDENTITY column's sequence past values inserted with IDENTITY_INSERT. */
  readonly reseed?: string;
}

function column(table: TableDefinition, name: string) {
  const folded = name.toLowerCase();
  const found =
    table.columns.find((each) => each.name === folded) ??
    table.columns.find((each) => each.name.toLowerCase() === folded);
  if (found === undefined) throw new SqlError(207, `Invalid column name '${name}'.`);
  return found;
}

/** Columns that an INSERT with this list of names has values for; without names, all that take values. */
export function insertColumns(
  table: TableDefinition,
  names: readonly string[],
  takesIdentity: boolean,
): TableDefinition["columns"] {
  if (names.length === 0)
    return table.columns.filter((each) => each.isComputed !== true && (each.isIdentity !== true || takesIdentity));
  const named = names.map((name) => column(table, name));
  if (named.some((each) => each.isIdentity === true) && !takesIdentity) {
    const message = `Cannot insert a value for the identity column of '${table.name}' when IDENTITY_INSERT is OFF.`;
    throw new SqlError(544, message);
  }
  const computed = named.find((each) => each.isComputed === true);
  if (computed !== undefined)
    throw new SqlError(271, `The column "${computed.spelling}" cannot be modified because it is computed.`);
  return named;
}

/** `returnsIdentity`: the identity is returned as an additional column. */
export function emitInsert(insert: Insert, context: EmitContext, returnsIdentity = true): EmittedDml {
  const common = emitCommonTables(insert.with, context);
  const table = targetTable(insert.target, context);
  const isIdentityInsert = context.session.identityInsert === qualified(table);
  const columns = insertColumns(table, insert.columns, isIdentityInsert);
  const identity = returnsIdentity ? table.columns.find((each) => each.isIdentity === true) : undefined;
  const names = columns.map(({ name }) => quoteName(name)).join(", ");
  const values =
    insert.source.kind === "default" ? "DEFAULT VALUES" : `(${names}) ${emitInsertSource(insert, columns, context)}`;
  const scope = new Scope();
  const alias = "inserted";
  scope.add({ alias, object: undefined, columns: table.columns });
  const { sql, columns: output } = emitOutput(
    insert.output,
    scope,
    context,
    identity && `${quoteName(alias)}.${quoteName(identity.name)}`,
  );
  const text = [common, `INSERT INTO ${qualified(table)} AS ${quoteName(alias)}`, values, sql];
  return {
    sql: text.filter((part) => part !== "").join(" "),
    columns: output,
    hasIdentity: identity !== undefined,
    ...(isIdentityInsert && identity !== undefined && { reseed: reseedText(table, identity.name) }),
  };
}

/** Statement that advances the sequence of an IDENTITY column past its values. */
export function reseedText(table: TableDefinition, identity: string): string {
  const sequence = `pg_get_serial_sequence(${escapeLiteral(qualified(table))}, ${escapeLiteral(identity)})::regclass`;
  const highest = `(SELECT max(${quoteName(identity)}) AS v FROM ${qualified(table)})`;
  return `SELECT setval(s.q, m.v) FROM (SELECT ${sequence} AS q) AS s, ${highest} AS m WHERE m.v > COALESCE(pg_sequence_last_value(s.q), 0)`;
}

function emitInsertSource(insert: Insert, columns: TableDefinition["columns"], context: EmitContext): string {
  const { source } = insert;
  const countError = (given: number) => {
    const number = given < columns.length ? 109 : 110;
    const more = given < columns.length ? "more" : "fewer";
    return new SqlError(number, `INSERT has ${more} columns than a row of VALUES.`, { severity: 15 });
  };
  if (source.kind === "values") {
    const rows = source.rows.map((row) => {
      if (row.length !== columns.length) throw countError(row.length);
      return `(${row.map((value, index) => emitAssigned(value, columns[index], new Scope(), context)).join(", ")})`;
    });
    return `VALUES ${rows.join(", ")}`;
  }
  if (source.kind !== "query") return "";
  const { sql, columns: own } = emitQuery(source, context);
  if (own.length !== columns.length) {
    const number = own.length < columns.length ? 120 : 121;
    const message = `The query of INSERT has ${own.length < columns.length ? "fewer" : "more"} columns than its target list.`;
    throw new SqlError(number, message, { severity: 15 });
  }
  const alias = context.freshAlias();
  const names = own.map((_, index) => `c${index}`);
  const list = own.map(({ type }, index) => {
    const operand: Typed = { sql: `${alias}.c${index}`, type, isCollated: true };
    return assignTo(operand, columns[index]?.type ?? type);
  });
  return `SELECT ${list.join(", ")} FROM (${sql}) AS ${alias} (${names.join(", ")})`;
}

function emitAssigned(
  value: Expression,
  target: TableDefinition["columns"][number] | undefined,
  scope: Scope,
  context: EmitContext,
): string {
  if (value.kind === "default") return "DEFAULT";
  const typed = emitExpression(value, scope, context);
  return target === undefined ? typed.sql : assignTo(typed, target.type);
}

/** RETURNING with the columns of OUTPUT, and the identity for SCOPE_IDENTITY(). */
function emitOutput(
  output: Output | undefined,
  scope: Scope,
  context: EmitContext,
  identity: string | undefined,
): EmittedQuery {
  const items = output?.items.flatMap((item) => emitItem(item, scope, context)) ?? [];
  const list = [...items.map(({ sql }) => sql), ...(identity === undefined ? [] : [identity])];
  const columns: OutputColumn[] = items.map((item) => item.column);
  return { sql: list.length === 0 ? "" : `RETURNING ${list.join(", ")}`, columns };
}

function emitAssignments(
  assignments: readonly Assignment[],
  table: TableDefinition,
  scope: Scope,
  context: EmitContext,
): string {
  return assignments
    .flatMap(({ column: name, expression }) => {
      if (name === undefined) return [];
      const target = column(table, name);
      if (target.isIdentity === true) throw new SqlError(8102, `Cannot update identity column '${target.spelling}'.`);
      if (target.isComputed === true)
        throw new SqlError(271, `The column "${target.spelling}" cannot be modified because it is computed.`);
      return `${quoteName(target.name)} = ${emitAssigned(expression, target, scope, context)}`;
    })
    .join(", ");
}

/** Values for SET @variable: new values of columns, and expressions of columns that the statement does not change. */
function emitVariables(update: Update, { table, alias, scope }: ChangedTarget, context: EmitContext): string[] {
  if (hasRunningValues(update)) throw refuse("running values in UPDATE", 0);
  return update.assignments.flatMap(({ variable, column: name, expression }) => {
    if (variable === undefined) return [];
    if (name === undefined) return [emitExpression(expression, scope, context).sql];
    return [`${quoteName(alias)}.${quoteName(column(table, name).name)}`];
  });
}

/** True if a SET @variable depends on the order of the rows, or on values that the statement has replaced. */
export function hasRunningValues({ assignments }: Update): boolean {
  const columns = new Set(assignments.map(({ column: name = "" }) => name.toLowerCase()));
  const variables = new Set(assignments.map(({ variable = "" }) => variable.toLowerCase()));
  return assignments.some(({ variable, column: name, expression }) =>
    containsExpression(expression, (node) => {
      if (node.kind === "variable") return variables.has(node.name.toLowerCase());
      if (variable === undefined || name !== undefined) return false;
      return (
        node.kind === "subquery" || (node.kind === "column" && columns.has((node.path.at(-1) ?? "").toLowerCase()))
      );
    }),
  );
}

function containsExpression(node: unknown, isFound: (node: Expression) => boolean): boolean {
  if (Array.isArray(node)) return node.some((each) => containsExpression(each, isFound));
  if (typeof node !== "object" || node === null) return false;
  if ("kind" in node && isFound(node as Expression)) return true;
  return Object.values(node).some((each) => containsExpression(each, isFound));
}

/** Condition for TOP (n): n of the rows that satisfy WHERE, in no defined order, locked and selected by `ctid`. */
function topCondition(
  statement: Update | Delete,
  { table, alias, from }: ChangedTarget,
  context: EmitContext,
): string | undefined {
  if (statement.top === undefined) return undefined;
  if (from.length > 0) throw refuse("TOP with a join in a change", 0);
  const scope = new Scope();
  scope.add({ alias, object: alias, columns: table.columns });
  const where = statement.where === undefined ? "" : ` WHERE ${emitPredicate(statement.where, scope, context)}`;
  const limit = emitTop(statement.top, context);
  return `${quoteName(alias)}.ctid = ANY (ARRAY(SELECT ctid FROM ${qualified(table)} AS ${quoteName(alias)}${where} ${limit} FOR UPDATE))`;
}

function whereText(
  statement: Update | Delete,
  target: ChangedTarget,
  context: EmitContext,
  more: readonly string[] = [],
): string {
  const conditions = [
    ...more,
    ...target.conditions,
    ...(statement.where === undefined ? [] : [emitPredicate(statement.where, target.scope, context)]),
  ];
  const top = topCondition(statement, target, context);
  if (top !== undefined) conditions.push(top);
  return conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
}

export function emitUpdate(update: Update, context: EmitContext): EmittedDml {
  const common = emitCommonTables(update.with, context);
  const target = emitTarget(update.target, update.from, context);
  const { table, alias, scope } = target;
  const from = [...target.from];
  const assignments = emitAssignments(update.assignments, table, scope, context);
  const more: string[] = [];
  const previous = previousValues(update.output, target, update.where, context);
  if (previous !== undefined) {
    from.push(previous.source);
    more.push(previous.condition);
  }
  const where = whereText(update, target, context, more);
  const output = outputScope(scope, table, alias, previous !== undefined);
  const { sql, columns } = emitOutput(update.output, output, context, undefined);
  const values = emitVariables(update, target, context).join(", ");
  const returning = values === "" ? sql : `${sql === "" ? "RETURNING" : `${sql},`} ${values}`;
  const text = [
    common,
    `UPDATE ${qualified(table)} AS ${quoteName(alias)} SET ${assignments}`,
    from.length === 0 ? "" : `FROM ${from.join(", ")}`,
    where,
    replaceInserted(returning, alias),
  ];
  const variables = update.assignments.flatMap(({ variable }) => (variable === undefined ? [] : [variable]));
  return { sql: text.filter((part) => part !== "").join(" "), columns, hasIdentity: false, variables };
}

const insertedName = "inserted";
const deletedName = "deleted";

/** `inserted` is the target after the change, `deleted` its rows before it. */
function outputScope(scope: Scope, table: TableDefinition, alias: string, hasDeleted: boolean): Scope {
  const output = new Scope();
  for (const source of scope.sources) output.sources.push(source);
  if (alias !== insertedName) output.sources.push({ alias: insertedName, object: undefined, columns: table.columns });
  if (hasDeleted) output.sources.push({ alias: deletedName, object: undefined, columns: table.columns });
  return output;
}

/** Replaces the alias `inserted` of a RETURNING clause by the target's alias; string literals are skipped. */
function replaceInserted(returning: string, alias: string): string {
  return returning.replaceAll(/("(?:[^"]|"")*")|('(?:[^']|'')*')/g, (match, name: string | undefined) =>
    name === quoteName(insertedName) ? quoteName(alias) : match,
  );
}

/** Subquery with the rows before an UPDATE, for OUTPUT deleted: locked, and joined to the target by the primary key. */
function previousValues(
  output: Output | undefined,
  { table, alias, from }: ChangedTarget,
  where: Predicate | undefined,
  context: EmitContext,
) {
  const usesDeleted =
    output?.items.some(({ expression }) => expression.kind !== "literal" && refersTo(expression, deletedName)) === true;
  if (!usesDeleted) return undefined;
  if (table.primaryKey.length === 0 || from.length > 0) throw refuse("OUTPUT deleted without a key", 0);
  const scope = new Scope();
  scope.add({ alias, object: alias, columns: table.columns });
  const condition = where === undefined ? "" : ` WHERE ${emitPredicate(where, scope, context)}`;
  const quotedAlias = quoteName(alias);
  return {
    source: `(SELECT * FROM ${qualified(table)} AS ${quotedAlias}${condition} FOR UPDATE) AS ${quoteName(deletedName)}`,
    condition: table.primaryKey
      .map((key) => `${quotedAlias}.${quoteName(key)} = ${quoteName(deletedName)}.${quoteName(key)}`)
      .join(" AND "),
  };
}

function refersTo(node: unknown, qualifier: string): boolean {
  if (Array.isArray(node)) return node.some((each) => refersTo(each, qualifier));
  if (typeof node !== "object" || node === null) return false;
  const { kind, path } = node as { kind?: string; path?: readonly string[] };
  if ((kind === "column" || kind === "star") && path !== undefined)
    return path[kind === "star" ? path.length - 1 : path.length - 2]?.toLowerCase() === qualifier;
  return Object.values(node).some((each) => refersTo(each, qualifier));
}

export function emitDelete(statement: Delete, context: EmitContext): EmittedDml {
  const common = emitCommonTables(statement.with, context);
  const target = emitTarget(statement.target, statement.from, context);
  const { table, alias, from } = target;
  const where = whereText(statement, target, context);
  const output = new Scope();
  output.sources.push({ alias: deletedName, object: undefined, columns: table.columns });
  const { sql, columns } = emitOutput(statement.output, output, context, undefined);
  const text = [
    common,
    `DELETE FROM ${qualified(table)} AS ${quoteName(alias)}`,
    from.length === 0 ? "" : `USING ${from.join(", ")}`,
    where,
    sql.replaceAll(`${quoteName(deletedName)}.`, `${quoteName(alias)}.`),
  ];
  return { sql: text.filter((part) => part !== "").join(" "), columns, hasIdentity: false };
}

export function emitMerge(merge: Merge, context: EmitContext): EmittedDml {
  const common = emitCommonTables(merge.with, context);
  const table = targetTable(merge.target, context);
  const written = merge.target.kind === "table" ? (merge.target.path.at(-1) ?? "") : merge.target.name;
  const alias = (merge.alias ?? written).toLowerCase();
  const scope = new Scope();
  scope.add({ alias, object: merge.alias === undefined ? alias : undefined, columns: table.columns });
  const using = emitSource(merge.source, scope, context);
  const on = emitPredicate(merge.on, scope, context);
  const clauses = merge.clauses.map((clause) => emitMergeClause(clause, table, scope, context)).join(" ");
  const text = `MERGE INTO ${qualified(table)} AS ${quoteName(alias)} USING ${using} ON ${on} ${clauses}`;
  const { sql, columns } = emitMergeOutput(merge, table, alias, scope, context);
  return { sql: [common, text, sql].filter((part) => part !== "").join(" "), columns, hasIdentity: false };
}

const actionName = "$action";

/** RETURNING of a MERGE, which has the rows after an INSERT or UPDATE and those before a DELETE. */
function emitMergeOutput(
  { output, clauses }: Merge,
  table: TableDefinition,
  alias: string,
  scope: Scope,
  context: EmitContext,
): EmittedQuery {
  if (output === undefined) return { sql: "", columns: [] };
  const updates = clauses.some(({ action }) => action.kind === "update");
  if (updates && output.items.some(({ expression }) => refersTo(expression, deletedName)))
    throw refuse("OUTPUT deleted of MERGE", 0);
  const action: ColumnSource = {
    name: actionName,
    spelling: actionName,
    type: { name: "nvarchar", length: 10 },
    isNullable: false,
  };
  const outputScope = new Scope();
  outputScope.sources.push({ alias: "", object: undefined, columns: [action] });
  for (const name of [insertedName, deletedName])
    outputScope.sources.push({ alias: name, object: undefined, columns: table.columns });
  for (const source of scope.sources)
    if (source.alias !== alias && ![insertedName, deletedName].includes(source.alias)) outputScope.sources.push(source);
  const { sql, columns } = emitOutput(output, outputScope, context, undefined);
  const row = (name: string, condition: string): [RegExp, string] => [
    new RegExp(`"${name}"\\.("(?:[^"]|"")*")`, "g"),
    `(CASE WHEN merge_action() ${condition} 'DELETE' THEN ${quoteName(alias).replaceAll("$", "$$$$")}.$1 END)`,
  ];
  const replacements = [row(insertedName, "<>"), row(deletedName, "=")];
  const replaced = sql.replaceAll(
    /("(?:[^"]|"")*"(?:\."(?:[^"]|"")*")?)|('(?:[^']|'')*')/g,
    (match, name: string | undefined, _: unknown, at: number) => {
      if (name === undefined) return match;
      if (name === quoteName(actionName)) return sql.slice(0, at).endsWith(" AS ") ? name : "merge_action()";
      return replacements.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), name);
    },
  );
  return { sql: replaced, columns };
}

/**
 * A change whose OUTPUT is inserted into a table. The hidden column is the IDENTITY of the change, as in other changes.
 */
export function emitOutputInto(
  emitted: EmittedDml,
  { target, columns: names }: NonNullable<Output["into"]>,
  context: EmitContext,
): EmittedDml {
  const table = targetTable(target, context);
  const columns = insertColumns(table, names, context.session.identityInsert === qualified(table));
  if (columns.length !== emitted.columns.length) {
    const message = "Column name or number of supplied values does not match table definition.";
    throw new SqlError(213, message);
  }
  if (emitted.variables !== undefined && emitted.variables.length > 0) throw refuse("running values in UPDATE", 0);
  const changed = quoteName(":changed");
  const list = emitted.columns.map(({ type }, index) => {
    const value: Typed = { sql: `c${index}`, type, isCollated: true };
    return assignTo(value, columns[index]?.type ?? type);
  });
  const all = [...emitted.columns.map((_, index) => `c${index}`), ...(emitted.hasIdentity ? ["i"] : [])];
  const insert = `INSERT INTO ${qualified(table)} (${columns.map(({ name }) => quoteName(name)).join(", ")}) SELECT ${list.join(", ")} FROM ${changed}`;
  const identity = emitted.hasIdentity ? "i" : "NULL::int8";
  return {
    ...emitted,
    sql: `WITH ${changed} (${all.join(", ")}) AS (${emitted.sql}), ${quoteName(":into")} AS (${insert}) SELECT ${identity} FROM ${changed}`,
    columns: [],
    hasIdentity: true,
  };
}

const mergeConditions = {
  matched: "MATCHED",
  notMatchedByTarget: "NOT MATCHED",
  notMatchedBySource: "NOT MATCHED BY SOURCE",
} as const;

function emitMergeClause(
  { when, condition, action }: MergeClause,
  table: TableDefinition,
  scope: Scope,
  context: EmitContext,
): string {
  const extra = condition === undefined ? "" : ` AND ${emitPredicate(condition, scope, context)}`;
  const begin = `WHEN ${mergeConditions[when]}${extra} THEN`;
  switch (action.kind) {
    case "delete":
      return `${begin} DELETE`;
    case "update":
      return `${begin} UPDATE SET ${emitAssignments(action.assignments, table, scope, context)}`;
    case "insert": {
      const columns =
        action.columns.length > 0
          ? action.columns.map((name) => column(table, name))
          : table.columns.filter((each) => each.isIdentity !== true && each.isComputed !== true);
      const values = action.values.map((value, index) => emitAssigned(value, columns[index], scope, context));
      return `${begin} INSERT (${columns.map(({ name }) => quoteName(name)).join(", ")}) VALUES (${values.join(", ")})`;
    }
  }
}
