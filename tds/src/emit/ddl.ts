import { isSystemDatabase, schemaOf } from "../bind/databases.ts";
import { objectName, type ObjectName, qualified, quoteName, temporarySchema } from "../bind/object-name.ts";
import { moduleSource } from "../catalog/module-text.ts";
import { userTypeComment } from "../catalog/user-types.ts";
import { escapeLiteral } from "../run/backend.ts";
import { Scope } from "../bind/scope.ts";
import type { ColumnDefinition, CreateModule, CreateType, Ddl, Grant, Path, TableConstraint } from "../parse/ast.ts";
import { refuse } from "../parse/features.ts";
import { SqlError } from "../run/sql-error.ts";
import { castType, columnType } from "../types/backend-type.ts";
import { isCharacter, type TsqlType } from "../types/tsql-type.ts";
import type { EmitContext } from "./context.ts";
import { assignTo } from "./conversions.ts";
import { emitExpression, emitPredicate } from "./expressions.ts";
import { emitQuery } from "./queries.ts";

/** Statements of PostgreSQL for one DDL statement of T-SQL; they run in one transaction. */
export interface EmittedDdl {
  readonly statements: readonly string[];
}

export function emitDdl(ddl: Exclude<Ddl, Grant | CreateModule>, context: EmitContext): EmittedDdl {
  switch (ddl.kind) {
    case "createTable":
      return { statements: emitCreateTable(nameOf(ddl.path, context), ddl.columns, ddl.constraints, context) };
    case "alterTable":
      return { statements: emitAlterTable(ddl, context) };
    case "createIndex":
      return { statements: [emitCreateIndex(ddl, context)] };
    case "createView": {
      const name = nameOf(ddl.path, context);
      const { sql, columns } = emitQuery(ddl.query, context);
      if (context.values.length > 0)
        throw new SqlError(156, "Incorrect syntax near the keyword 'VIEW'.", { severity: 15 });
      const names = columns.map((column, index) => ddl.columns[index] ?? column.name);
      if (names.includes("")) throw new SqlError(4511, "Each column of the view must have a name. Add an alias.");
      const view = `CREATE VIEW ${qualified(name)} (${names.map((each) => quoteName(each.toLowerCase())).join(", ")}) AS ${sql}`;
      return { statements: [view, ...spellings(name, ddl.path, names)] };
    }
    case "createSchema": {
      const schema = quoteName(schemaName(ddl.name, context));
      return { statements: [`CREATE SCHEMA ${schema}`, `GRANT USAGE ON SCHEMA ${schema} TO PUBLIC`] };
    }
    case "createProcedure":
      return { statements: emitCreateProcedure(ddl, nameOf(ddl.path, context)) };
    case "createSequence": {
      const type = ddl.type === undefined ? "" : ` AS ${columnType(ddl.type).sql}`;
      const increment = ddl.increment === undefined ? "" : ` INCREMENT BY ${ddl.increment}`;
      const start = ddl.start === undefined ? "" : ` MINVALUE ${ddl.start} START WITH ${ddl.start}`;
      return { statements: [`CREATE SEQUENCE ${qualified(nameOf(ddl.path, context))}${type}${increment}${start}`] };
    }
    case "createType":
      return { statements: emitCreateType(ddl, nameOf(ddl.path, context), context) };
    case "drop":
      return { statements: [emitDrop(ddl, context)] };
    case "dropIndex": {
      const table = nameOf(ddl.table, context);
      const index = qualified({ schema: table.schema, name: indexName(table, ddl.name) });
      return { statements: [`DROP INDEX ${ddl.ifExists ? "IF EXISTS " : ""}${index}`] };
    }
    case "truncate":
      return { statements: [`TRUNCATE TABLE ${qualified(nameOf(ddl.path, context))} RESTART IDENTITY`] };
  }
}

function nameOf(path: Path, { session }: EmitContext): ObjectName {
  if (path.at(-1)?.startsWith("##") === true) throw refuse("global temporary tables", 0, path.join("."));
  return objectName(path, session, 0);
}

/** Schema of PostgreSQL that CREATE SCHEMA and DROP SCHEMA name. */
function schemaName(written: string, { session }: EmitContext): string {
  const name = written.toLowerCase();
  if (session.layoutMode === "single-db") return name;
  if (isSystemDatabase(session.database))
    throw new SqlError(262, `Permission denied in database '${session.database}'.`, { severity: 14 });
  // The schema dbo exists as long as its database.
  if (name === "dbo" || name === "sys" || name === "information_schema")
    throw new SqlError(15_150, `Cannot create or drop the schema '${written}'.`);
  return schemaOf(session.database, name, 0);
}

/** Arguments of a procedure of PostgreSQL: those of T-SQL are in its text. */
const noArguments = "()";

function emitCreateProcedure(ddl: Extract<Ddl, { kind: "createProcedure" }>, name: ObjectName): string[] {
  const source = escapeLiteral(moduleSource(ddl.text));
  const verb = ddl.replaces === "none" ? "CREATE" : "CREATE OR REPLACE";
  return [
    `${verb} PROCEDURE ${qualified(name)}${noArguments} LANGUAGE plpgsql AS ${source}`,
    ...spellings(name, ddl.path, []),
  ];
}

/** The columns of a table type are those of a composite type; its comment has the rest of its definition. */
function emitCreateType({ path, definition }: CreateType, name: ObjectName, context: EmitContext): string[] {
  const quoted = qualified(name);
  const text = userTypeComment(definition);
  const comment = text === undefined ? [] : [`COMMENT ON TYPE ${quoted} IS ${escapeLiteral(text)}`];
  if (definition.kind === "alias") {
    if (definition.type.alias !== undefined) {
      const message = "The base type of a type must be a system type.";
      throw new SqlError(15_019, message);
    }
    const { sql } = columnType(checkedType(definition.type, name.name));
    return [...domains([definition]), `CREATE DOMAIN ${quoted} AS ${sql}`, ...comment, ...spellings(name, path, [])];
  }
  const { columns, constraints } = definition;
  // A type with an error in its constraints is refused here, and not by its first variable.
  const probe = { schema: temporarySchema, name: `:type ${name.name}`, written: name.written };
  const probeTable = emitCreateTable(probe, columns, constraints, context).filter(
    (each) => !each.startsWith("SELECT "),
  );
  const attributes = columns.map((column) => {
    const type = columnType(checkedType(typeOf(column), column.name));
    return `${quoteName(column.name.toLowerCase())} ${type.sql} ${collationText(typeOf(column), context)}`;
  });
  return [
    ...domains(columns),
    ...probeTable,
    `DROP TABLE ${qualified(probe)}`,
    `CREATE TYPE ${quoted} AS (${attributes.join(", ")})`,
    ...comment,
    ...spellings(
      name,
      path,
      columns.map((column) => column.name),
    ),
  ];
}

/** Error 350 for a table type, which no column has. */
function checkedType(type: TsqlType, column: string): TsqlType {
  if (type.table === undefined) return type;
  const message = `The column "${column}" does not have a valid data type: a column cannot be of a table type.`;
  throw new SqlError(350, message);
}

function emitDrop(ddl: Extract<Ddl, { kind: "drop" }>, context: EmitContext): string {
  const names = ddl.paths.map((path) =>
    ddl.object === "SCHEMA" ? quoteName(schemaName(path.at(-1) ?? "", context)) : qualified(nameOf(path, context)),
  );
  const list = ddl.object === "PROCEDURE" ? names.map((name) => `${name}${noArguments}`) : names;
  if (ddl.object === "TRIGGER") {
    // PostgreSQL's triggers, one for each event, depend on their function.
    const functions = names.map((name) => `${name}${noArguments}`);
    return `DROP FUNCTION ${ddl.ifExists ? "IF EXISTS " : ""}${functions.join(", ")} CASCADE`;
  }
  return `DROP ${ddl.object} ${ddl.ifExists ? "IF EXISTS " : ""}${list.join(", ")}`;
}

/** Name of an index: unique in its table in T-SQL, but in its schema in PostgreSQL, so the table's name precedes it. */
function indexName(table: ObjectName, index: string): string {
  return `${table.name}.${index.toLowerCase()}`;
}

export function emitCreateTable(
  name: ObjectName,
  columns: readonly ColumnDefinition[],
  constraints: readonly TableConstraint[],
  context: EmitContext,
): string[] {
  const isTemporary = name.schema === temporarySchema;
  const elements = [
    ...columns.map((column) => columnText(column, columns, context)),
    ...[...columns.flatMap((column) => column.constraints), ...constraints]
      .filter(({ kind }) => kind !== "default")
      .map((constraint) => constraintText(constraint, columns, context)),
  ];
  const table = isTemporary ? `TEMPORARY TABLE ${quoteName(name.name)}` : `TABLE ${qualified(name)}`;
  return [
    ...domains(columns),
    `CREATE ${table} (${elements.join(", ")})`,
    ...constraints.flatMap((constraint) =>
      constraint.kind === "default" ? [defaultText(name, constraint, context)] : [],
    ),
    ...(isTemporary
      ? []
      : spellings(
          name,
          name.written.split("."),
          columns.map((column) => column.name),
        )),
  ];
}

function domains(columns: readonly Pick<ColumnDefinition, "type">[]): string[] {
  const needed = columns.flatMap(({ type }) => (type === undefined ? [] : [columnType(type).domain]));
  return needed.flatMap((domain) =>
    domain === undefined ? [] : [`SELECT holdfast_tsql.ensure_domain('${domain.name}', ${domain.length})`],
  );
}

/** Statement that stores the spelling of names with capital letters. */
export function spellings(name: ObjectName, path: Path, columns: readonly string[]): string[] {
  const rows = [["", path.at(-1) ?? ""], ...columns.map((column) => [column.toLowerCase(), column])].filter(
    ([folded, spelling]) => folded !== spelling,
  );
  if (rows.length === 0) return [];
  const text = (value: string | undefined) => `'${(value ?? "").replaceAll("'", "''").replaceAll("\0", "")}'`;
  const values = rows.map(
    ([folded, spelling]) => `(${text(name.schema)}, ${text(name.name)}, ${text(folded)}, ${text(spelling)})`,
  );
  return [
    `INSERT INTO holdfast_tsql.spelling AS s (schema_name, object_name, column_name, spelling) VALUES ${values.join(", ")} ON CONFLICT (schema_name, object_name, column_name) DO UPDATE SET spelling = EXCLUDED.spelling`,
  ];
}

function typeOf(column: ColumnDefinition): TsqlType {
  return column.type ?? { name: "nvarchar", length: "max" };
}

function columnText(column: ColumnDefinition, columns: readonly ColumnDefinition[], context: EmitContext): string {
  const name = quoteName(column.name.toLowerCase());
  if (column.computed !== undefined) {
    const scope = new Scope();
    const known = columns.flatMap((each) =>
      each.type === undefined
        ? []
        : [{ name: each.name.toLowerCase(), spelling: each.name, type: each.type, isNullable: true }],
    );
    scope.add({ alias: "", object: undefined, columns: known });
    const typed = emitExpression(column.computed, scope, context);
    const { sql, domain } = columnType(typed.type);
    return `${name} ${domain === undefined ? sql : castType(typed.type)} GENERATED ALWAYS AS (${typed.sql}) STORED`;
  }
  const type = typeOf(column);
  if (type.name === "rowversion") throw refuse("rowversion", 0);
  const { sql } = columnType(checkedType(type, column.name));
  const isNullable = column.isNullable ?? type.alias?.isNullable;
  const isKey = column.constraints.some(({ kind }) => kind === "primaryKey");
  if (isKey && column.isNullable === true)
    throw new SqlError(8111, "Cannot define PRIMARY KEY constraint on a nullable column.");
  const parts = [
    name,
    sql,
    collationText(type, context),
    isNullable === false || isKey || column.identity !== undefined ? "NOT NULL" : "",
    column.identity === undefined
      ? ""
      : `GENERATED BY DEFAULT AS IDENTITY (START WITH ${column.identity.seed} INCREMENT BY ${column.identity.increment}${identityBounds(column.identity)})`,
    column.default === undefined ? "" : `DEFAULT ${defaultValue(column.default.expression, type, context)}`,
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/** PostgreSQL's sequences have a minimum of 1 by default, or a maximum of -1 if they descend. */
function identityBounds({ seed, increment }: NonNullable<ColumnDefinition["identity"]>): string {
  if (BigInt(increment) < 0n) return ` MAXVALUE ${seed}`;
  return BigInt(seed) < 1n ? ` MINVALUE ${seed}` : "";
}

function collationText(type: TsqlType, context: EmitContext): string {
  return !isCharacter(type) || type.name === "xml" ? "" : context.collate(type);
}

function defaultValue(
  expression: NonNullable<ColumnDefinition["default"]>["expression"],
  type: TsqlType,
  context: EmitContext,
): string {
  const typed = emitExpression(expression, new Scope(), context);
  if (context.values.length > 0)
    throw new SqlError(128, "Variables are not permitted in a DEFAULT expression.", { severity: 15 });
  return `(${assignTo(typed, type)})`;
}

function constraintText(
  constraint: TableConstraint,
  columns: readonly ColumnDefinition[],
  context: EmitContext,
): string {
  const name = constraint.name === undefined ? "" : `CONSTRAINT ${quoteName(constraint.name.toLowerCase())} `;
  const list = (names: readonly string[]) => names.map((each) => quoteName(each.toLowerCase())).join(", ");
  switch (constraint.kind) {
    case "primaryKey":
      return `${name}PRIMARY KEY (${list(constraint.columns)})`;
    case "unique":
      // SQL Server allows at most one NULL in a unique column.
      return `${name}UNIQUE NULLS NOT DISTINCT (${list(constraint.columns)})`;
    case "check": {
      const scope = new Scope();
      const known = columns.map((each) => ({
        name: each.name.toLowerCase(),
        spelling: each.name,
        type: typeOf(each),
        isNullable: true,
      }));
      scope.add({ alias: "", object: undefined, columns: known });
      return `${name}CHECK (${emitPredicate(constraint.predicate, scope, context)})`;
    }
    case "foreignKey": {
      const referenced = constraint.referencedColumns.length === 0 ? "" : ` (${list(constraint.referencedColumns)})`;
      const onDelete = constraint.onDelete === undefined ? "" : ` ON DELETE ${constraint.onDelete}`;
      const onUpdate = constraint.onUpdate === undefined ? "" : ` ON UPDATE ${constraint.onUpdate}`;
      const target = qualified(nameOf(constraint.references, context));
      return `${name}FOREIGN KEY (${list(constraint.columns)}) REFERENCES ${target}${referenced}${onDelete}${onUpdate}`;
    }
    case "default":
      return "";
  }
}

function defaultText(
  table: ObjectName,
  constraint: Extract<TableConstraint, { kind: "default" }>,
  context: EmitContext,
): string {
  const known = context.catalog.find(table)?.columns.find(({ name }) => name === constraint.column.toLowerCase());
  const value = defaultValue(constraint.expression, known?.type ?? { name: "nvarchar", length: "max" }, context);
  return `ALTER TABLE ${qualified(table)} ALTER COLUMN ${quoteName(constraint.column.toLowerCase())} SET DEFAULT ${value}`;
}

function emitAlterTable(ddl: Extract<Ddl, { kind: "alterTable" }>, context: EmitContext): string[] {
  const name = nameOf(ddl.path, context);
  const table = `ALTER TABLE ${qualified(name)}`;
  const { action } = ddl;
  switch (action.kind) {
    case "add": {
      const existing = context.table(ddl.path, 0).columns.map(
        ({ spelling, type }): ColumnDefinition => ({
          name: spelling,
          type,
          isNullable: undefined,
          identity: undefined,
          default: undefined,
          computed: undefined,
          constraints: [],
        }),
      );
      const all = [...existing, ...action.columns];
      const parts = [
        ...action.columns.map((column) => `ADD COLUMN ${columnText(column, all, context)}`),
        ...[...action.columns.flatMap((column) => column.constraints), ...action.constraints]
          .filter(({ kind }) => kind !== "default")
          .map((constraint) => `ADD ${constraintText(constraint, all, context)}`),
      ];
      return [
        ...domains(action.columns),
        ...(parts.length === 0 ? [] : [`${table} ${parts.join(", ")}`]),
        ...action.constraints.flatMap((constraint) =>
          constraint.kind === "default" ? [defaultText(name, constraint, context)] : [],
        ),
        ...spellings(
          name,
          [name.name],
          action.columns.map((column) => column.name),
        ),
      ];
    }
    case "dropColumn":
    case "dropConstraint": {
      const object = action.kind === "dropColumn" ? "COLUMN" : "CONSTRAINT";
      const ifExists = action.ifExists ? "IF EXISTS " : "";
      const columns = object === "CONSTRAINT" ? (context.catalog.find(name)?.columns ?? []) : [];
      const drops = action.names.map((each) => {
        // The name of a DEFAULT in sys.default_constraints; it is no constraint in PostgreSQL.
        const column = columns.find((known) => `df_${name.name}_${known.name}` === each.toLowerCase());
        if (column !== undefined) return `ALTER COLUMN ${quoteName(column.name)} DROP DEFAULT`;
        return `DROP ${object} ${ifExists}${quoteName(each.toLowerCase())}`;
      });
      return [`${table} ${drops.join(", ")}`];
    }
    case "alterColumn": {
      const { column } = action;
      const quotedColumn = quoteName(column.name.toLowerCase());
      const type = typeOf(column);
      const collation = collationText(type, context);
      const nullable = `ALTER COLUMN ${quotedColumn} ${column.isNullable === false ? "SET" : "DROP"} NOT NULL`;
      return [
        ...domains([column]),
        `${table} ALTER COLUMN ${quotedColumn} TYPE ${columnType(type).sql} ${collation}, ${nullable}`,
      ];
    }
  }
}

function emitCreateIndex(ddl: Extract<Ddl, { kind: "createIndex" }>, context: EmitContext): string {
  const table = nameOf(ddl.table, context);
  const definition = context.table(ddl.table, 0);
  const columns = ddl.columns.map(({ name, isDescending }) => {
    const known = definition.columns.find((column) => column.name === name.toLowerCase());
    if (known === undefined) throw new SqlError(1911, `Column name '${name}' does not exist in the target table.`);
    const nulls = known.isNullable ? (isDescending ? " NULLS LAST" : " NULLS FIRST") : "";
    return `${quoteName(known.name)}${isDescending ? " DESC" : ""}${nulls}`;
  });
  const scope = new Scope();
  scope.add({ alias: "", object: undefined, columns: definition.columns });
  const where = ddl.where === undefined ? "" : ` WHERE ${emitPredicate(ddl.where, scope, context)}`;
  const include =
    ddl.include.length === 0 ? "" : ` INCLUDE (${ddl.include.map((name) => quoteName(name.toLowerCase())).join(", ")})`;
  const distinct = ddl.isUnique ? " NULLS NOT DISTINCT" : "";
  const name = quoteName(indexName(table, ddl.name));
  return `CREATE ${ddl.isUnique ? "UNIQUE " : ""}INDEX ${name} ON ${qualified(table)} (${columns.join(", ")})${include}${distinct}${where}`;
}
