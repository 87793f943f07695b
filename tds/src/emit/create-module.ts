import { createHash } from "node:crypto";
import { type ObjectName, qualified, quoteName, temporarySchema } from "../bind/object-name.ts";
import { type ModuleColumn, type ModuleKind, moduleHeader } from "../catalog/module-text.ts";
import type { TableDefinition } from "../catalog/table-catalog.ts";
import type { CreateModule, FunctionDefinition, TriggerDefinition, TriggerEvent } from "../parse/ast.ts";
import { refuse } from "../parse/features.ts";
import { escapeLiteral } from "../run/backend.ts";
import { SqlError } from "../run/sql-error.ts";
import { collateText } from "../types/collation.ts";
import { isCharacter, type TsqlType } from "../types/tsql-type.ts";
import type { EmitContext, ModuleNames } from "./context.ts";
import { emitCreateTable, spellings } from "./ddl.ts";
import { bodyLabel, declareParameters, ModuleBody, parameterTypes, plainType } from "./module-body.ts";
import { emitQuery } from "./queries.ts";

type NewContext = (names: ModuleNames) => EmitContext;

/** Settings of functions in PL/pgSQL: names that are not qualified are those of PostgreSQL. */
const settings = "SET search_path = pg_catalog, pg_temp";
/** A name that is a column and a variable is the column: variables begin with @. */
const option = "#variable_conflict use_column";

/** Statements that create a function or trigger; the previous one, if any, has been dropped. */
export function emitCreateModule(
  { definition, text }: CreateModule,
  name: ObjectName,
  newContext: NewContext,
): string[] {
  const statements =
    definition.kind === "trigger"
      ? emitTrigger(definition, text, name, newContext)
      : emitFunction(definition, text, name, newContext);
  return [...statements, ...spellings(name, definition.path, [])];
}

export function kindOf(definition: FunctionDefinition | TriggerDefinition): ModuleKind {
  if (definition.kind === "trigger") return "TR";
  return ({ scalar: "FN", query: "IF", table: "TF" } as const)[definition.returns.kind];
}

function emitFunction(
  definition: FunctionDefinition,
  text: string,
  name: ObjectName,
  newContext: NewContext,
): string[] {
  const { parameters, returns } = definition;
  const table = parameters.find(({ type }) => type.table !== undefined);
  if (table !== undefined) throw refuse("table-valued parameters of functions", 0, table.name);
  if (parameters.some(({ isOutput }) => isOutput))
    throw new SqlError(181, "Cannot use the OUTPUT option in a function declaration.", { severity: 15 });
  const head = `CREATE FUNCTION ${qualified(name)}(${parameterTypes(parameters)})`;
  switch (returns.kind) {
    case "scalar": {
      const body = new ModuleBody({
        definition,
        newContext,
        returns(self, expression) {
          if (expression === undefined)
            throw new SqlError(178, "A RETURN statement with a return value is needed in this context.", {
              severity: 15,
            });
          return `RETURN ${self.expression(expression, returns.type)};`;
        },
      });
      if (definition.statements.at(-1) === undefined) throw lastStatement();
      const source = bodyText(body, definition, [], [missingReturn(definition)]);
      const stored = moduleHeader({ kind: "FN", text }) + source;
      return [
        `${head} RETURNS ${plainType(returns.type)} LANGUAGE plpgsql STABLE ${settings} AS ${escapeLiteral(stored)}`,
      ];
    }
    case "query":
      return [emitInline(definition, returns.query, text, head, newContext)];
    case "table":
      return emitTableFunction(definition, returns, text, name, head, newContext);
  }
}

function lastStatement(): SqlError {
  return new SqlError(455, "The last statement included within a function must be a return statement.");
}

/** Error 455 for a function whose last statement is no RETURN, as in SQL Server. */
function missingReturn({ statements }: FunctionDefinition): string {
  const last =
    statements.length === 1 && statements[0]?.body.kind === "block" ? statements[0].body.statements : statements;
  if (last.at(-1)?.body.kind !== "return") throw lastStatement();
  return "";
}

/** Declarations and statements, between others. */
function bodyText(
  body: ModuleBody,
  definition: FunctionDefinition,
  before: readonly string[],
  after: readonly string[],
): string {
  declareParameters(body, definition.parameters);
  body.declareAll(definition.statements);
  const statements = body.statements(definition.statements);
  const parts = [option, "DECLARE", ...body.declarations, "BEGIN", ...before, statements, ...after, "END"];
  return parts.filter((part) => part !== "").join("\n");
}

/** A function whose body is one query: PostgreSQL expands it where it is called. */
function emitInline(
  { parameters }: FunctionDefinition,
  query: Parameters<typeof emitQuery>[0],
  text: string,
  head: string,
  newContext: NewContext,
): string {
  const { collation } = newContext(noNames).session;
  const variables = new Map(
    parameters.map(({ name, type }, index) => {
      const isText = isCharacter(type) && type.name !== "xml";
      return [
        name.toLowerCase(),
        { sql: isText ? `($${index + 1} ${collateText(collation)})` : `$${index + 1}`, type },
      ];
    }),
  );
  const { sql, columns } = emitQuery(query, newContext({ variables, tables: new Map() }));
  const unnamed = columns.findIndex(({ name }) => name === "");
  if (unnamed !== -1)
    throw new SqlError(
      4514,
      `CREATE FUNCTION failed because a column name is not specified for column ${unnamed + 1}.`,
    );
  const names = columns.map((_, index) => `c${index}`);
  const list = columns.map(({ type }, index) => `q.c${index}::${plainType(type)}`);
  const stored = moduleHeader({ kind: "IF", text, columns });
  const source = `${stored}SELECT ${list.join(", ")} FROM (${sql}) AS q (${names.join(", ")})`;
  return `${head} RETURNS TABLE (${resultColumns(columns)}) LANGUAGE sql STABLE AS ${escapeLiteral(source)}`;
}

function resultColumns(columns: readonly { readonly name: string; readonly type: TsqlType }[]): string {
  return columns.map(({ name, type }) => `${quoteName(name.toLowerCase())} ${plainType(type)}`).join(", ");
}

/** A function that fills a table variable, which is a temporary table while it runs. */
function emitTableFunction(
  definition: FunctionDefinition,
  returns: Extract<FunctionDefinition["returns"], { kind: "table" }>,
  text: string,
  name: ObjectName,
  head: string,
  newContext: NewContext,
): string[] {
  const columns = returns.columns.map(({ name: column, type, isNullable }): ModuleColumn => {
    if (type === undefined) throw refuse("computed columns of table variables", 0);
    return { name: column, type, isNullable: isNullable !== false };
  });
  const tableName = `${name.name}:${returns.name.toLowerCase()}`;
  const table: TableDefinition = {
    schema: temporarySchema,
    name: tableName,
    columns: returns.columns.map(({ name: spelling, type, isNullable, identity }) => ({
      name: spelling.toLowerCase(),
      spelling,
      type: type ?? { name: "int" },
      isNullable: isNullable !== false,
      isIdentity: identity !== undefined,
    })),
    primaryKey: [],
  };
  const temporary = { schema: temporarySchema, name: tableName, written: returns.name };
  const create = emitCreateTable(temporary, returns.columns, returns.constraints, newContext(noNames));
  // Domains are created with the function, the table with each call.
  const domains = create.filter((statement) => statement.startsWith("SELECT "));
  const tables = create.filter((statement) => !statement.startsWith("SELECT "));
  const finish = `RETURN QUERY SELECT ${columns
    .map(({ name: column, type }) => `t.${quoteName(column.toLowerCase())}::${plainType(type)}`)
    .join(", ")} FROM ${qualified(table)} AS t;\nDROP TABLE ${qualified(table)};\nRETURN;`;
  const body = new ModuleBody({
    definition,
    newContext,
    returns(_, expression) {
      if (expression !== undefined)
        throw new SqlError(178, "A RETURN statement with a return value cannot be used in this context.", {
          severity: 15,
        });
      return finish;
    },
  });
  body.tables.set(returns.name.toLowerCase(), table);
  missingReturn(definition);
  const source = bodyText(
    body,
    definition,
    tables.map((statement) => `${statement};`),
    [],
  );
  const stored = moduleHeader({ kind: "TF", text, columns }) + source;
  return [
    ...domains,
    `${head} RETURNS TABLE (${resultColumns(columns)}) LANGUAGE plpgsql ${settings} AS ${escapeLiteral(stored)}`,
  ];
}

const noNames: ModuleNames = { variables: new Map(), tables: new Map() };

/** Sources of `inserted` and `deleted` by the event, for statements (AFTER) and for rows (INSTEAD OF). */
const rowSources = {
  statement: {
    INSERT: { inserted: '"inserted"', deleted: '(SELECT * FROM "inserted" WHERE false)' },
    UPDATE: { inserted: '"inserted"', deleted: '"deleted"' },
    DELETE: { inserted: '(SELECT * FROM "deleted" WHERE false)', deleted: '"deleted"' },
  },
  row: {
    INSERT: { inserted: "(SELECT NEW.*)", deleted: "(SELECT NEW.* LIMIT 0)" },
    UPDATE: { inserted: "(SELECT NEW.*)", deleted: "(SELECT OLD.*)" },
    DELETE: { inserted: "(SELECT OLD.* LIMIT 0)", deleted: "(SELECT OLD.*)" },
  },
} as const;

const transitionTables = {
  INSERT: "REFERENCING NEW TABLE AS inserted",
  UPDATE: "REFERENCING OLD TABLE AS deleted NEW TABLE AS inserted",
  DELETE: "REFERENCING OLD TABLE AS deleted",
} as const;

function emitTrigger(definition: TriggerDefinition, text: string, name: ObjectName, newContext: NewContext): string[] {
  const table = newContext(noNames).table(definition.table, 0);
  if (definition.table.at(-1)?.startsWith("#") === true)
    throw new SqlError(8108, "Cannot create a trigger on a temporary table.");
  if (table.isView === true && !definition.isInsteadOf)
    throw new SqlError(208, `Invalid object name '${definition.table.join(".")}': AFTER triggers are on tables.`);
  const body = new ModuleBody({ definition, newContext, returns: () => `EXIT ${bodyLabel};` });
  body.declareAll(definition.statements);
  const branches = definition.events.map((event) => eventText(definition, event, table, body));
  // A statement of the trigger on its own table does not fire it again.
  const flag = `holdfast_tsql.f${createHash("sha256").update(qualified(name)).digest("hex").slice(0, 24)}`;
  const result = definition.isInsteadOf && table.isView === true ? rowResult : "RETURN NULL;";
  const inner = definition.isInsteadOf ? rowResult : "RETURN NULL;";
  const source = [
    option,
    "DECLARE",
    ...body.declarations,
    "BEGIN",
    `IF current_setting('${flag}', true) = 'on' THEN ${inner} END IF;`,
    `PERFORM set_config('${flag}', 'on', true);`,
    `<<${bodyLabel}>> BEGIN`,
    ...branches,
    "END;",
    `PERFORM set_config('${flag}', '', true);`,
    result,
    "END",
  ].join("\n");
  const stored = moduleHeader({ kind: "TR", text }) + source;
  const create = `CREATE FUNCTION ${qualified(name)}() RETURNS trigger LANGUAGE plpgsql ${settings} AS ${escapeLiteral(stored)}`;
  return [
    create,
    ...definition.events.map((event) => {
      const trigger = quoteName(`${name.name}:${event.toLowerCase()}`);
      const target = `${event} ON ${qualified(table)}`;
      const when = definition.isInsteadOf
        ? `${table.isView === true ? "INSTEAD OF" : "BEFORE"} ${target} FOR EACH ROW`
        : `AFTER ${target} ${transitionTables[event]} FOR EACH STATEMENT`;
      return `CREATE TRIGGER ${trigger} ${when} EXECUTE FUNCTION ${qualified(name)}()`;
    }),
  ];
}

/** A row trigger returns the row that PostgreSQL then changes. */
const rowResult = "IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW;";

function eventText(
  { statements, isInsteadOf }: TriggerDefinition,
  event: TriggerEvent,
  table: TableDefinition,
  body: ModuleBody,
): string {
  const sources = rowSources[isInsteadOf ? "row" : "statement"][event];
  const rowSet = (name: string, source: string): [string, TableDefinition] => [
    name,
    { schema: "", name, columns: table.columns, primaryKey: table.primaryKey, text: source },
  ];
  body.rowSets = new Map([rowSet("inserted", sources.inserted), rowSet("deleted", sources.deleted)]);
  body.updated = (column) => {
    const found = table.columns.find(({ name }) => name === column.toLowerCase());
    if (found === undefined) throw new SqlError(207, `Invalid column name '${column}'.`);
    if (event !== "UPDATE") return event === "INSERT" ? "true" : "false";
    const select = (source: string) => `SELECT t.${quoteName(found.name)} FROM ${source} AS t`;
    return `EXISTS (${select(sources.inserted)} EXCEPT ALL ${select(sources.deleted)})`;
  };
  const changed = event === "DELETE" ? sources.deleted : sources.inserted;
  const count = `"@@rowcount" := (SELECT count(*) FROM ${changed} AS t);`;
  return `IF TG_OP = '${event}' THEN\n${count}\n${body.statements(statements)}\nEND IF;`;
}
