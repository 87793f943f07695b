import type { ColumnSource } from "../bind/scope.ts";
import { type ObjectName, temporarySchema } from "../bind/object-name.ts";
import type { FunctionDefinition, ProcedureDefinition } from "../parse/ast.ts";
import { parseModuleText } from "../parse/batch.ts";
import { isModule, moduleText, type ModuleColumn, parseModuleHeader, type StoredModule } from "./module-text.ts";
import type { UserTypes } from "./user-types.ts";
import { typeOfDomain, typeOfOid } from "../types/backend-type.ts";
import { type Collation, collationOfBackend } from "../types/collation.ts";
import { isCharacter } from "../types/tsql-type.ts";

export interface TableDefinition {
  readonly schema: string;
  readonly name: string;
  readonly columns: readonly ColumnSource[];
  /** Columns of the primary key, in its order; empty without one. */
  readonly primaryKey: readonly string[];
  readonly isView?: boolean;
  /** Text of the source in FROM in place of its name, such as a subquery. */
  readonly text?: string;
}

/** A function that a user created. */
export interface UserFunction {
  readonly name: ObjectName;
  readonly definition: FunctionDefinition;
  /** Columns of its rows; undefined for a scalar function. */
  readonly columns: readonly ColumnSource[] | undefined;
  readonly isExecutable: boolean;
}

export interface Procedure {
  readonly definition: ProcedureDefinition;
  /** False if the role may not execute it. */
  readonly isExecutable: boolean;
}

export interface TableCatalog {
  /** The procedure with this name; undefined if there is none. */
  procedure(name: ObjectName): Promise<Procedure | undefined>;
  /** The function or trigger of T-SQL with this name, or another routine of PostgreSQL. */
  module(name: ObjectName): Promise<StoredModule | "foreign" | undefined>;
  /** Loads the definitions of these functions that are not cached. */
  loadFunctions(names: readonly ObjectName[]): Promise<void>;
  findFunction(name: ObjectName): UserFunction | undefined;
  /** Loads the definitions of these tables that are not cached. */
  load(names: readonly ObjectName[]): Promise<void>;
  /** A table or view; undefined if it does not exist. */
  find(name: ObjectName): TableDefinition | undefined;
  /** Spellings of the columns of a temporary table, which are in no table of the database. */
  spell(name: ObjectName, columns: readonly string[]): void;
  clear(): void;
}

/** Columns of a table by its lower-case name; if two tables differ only by case, the exact lower-case name is first. */
const columnsQuery = `
SELECT n.nspname, c.relname, a.attname,
       CASE WHEN tn.nspname = 'holdfast_tsql' AND t.typtype = 'd' THEN t.typname
         WHEN b.typtype = 'd' AND b.typnamespace = 'holdfast_tsql'::regnamespace THEN b.typname END,
       CASE WHEN b.typtype = 'd' THEN b.typbasetype WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END,
       CASE WHEN b.typtype = 'd' THEN b.typtypmod WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END,
       NOT a.attnotnull AND NOT t.typnotnull, a.attidentity, a.attgenerated,
       CASE n.nspname WHEN 'tsql_information_schema' THEN upper(a.attname) ELSE COALESCE(s.spelling, a.attname) END,
       array_position(i.indkey::int2[], a.attnum), c.relkind = 'v',
       (SELECT l.collname FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation)
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
  JOIN pg_catalog.pg_namespace tn ON tn.oid = t.typnamespace
  LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype AND t.typtype = 'd'
  LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
  LEFT JOIN holdfast_tsql.spelling s
    ON s.schema_name = n.nspname AND s.object_name = c.relname AND s.column_name = a.attname
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
   AND (n.nspname = $1 OR ($1 = 'pg_temp' AND n.oid = pg_catalog.pg_my_temp_schema()))
   AND lower(c.relname) = $2
 ORDER BY c.relname = $2 DESC, c.oid, a.attnum`;

/** The schema $1; `pg_temp` is that of the session. */
const inSchema = "(n.nspname = $1 OR ($1 = 'pg_temp' AND n.oid = pg_catalog.pg_my_temp_schema()))";

const procedureQuery = `
SELECT ${moduleText}, pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
 WHERE ${inSchema} AND lower(p.proname) = $2 AND ${isModule}
 ORDER BY p.proname = $2 DESC LIMIT 1`;

const routineQuery = `
SELECT p.prosrc, pg_catalog.has_function_privilege(p.oid, 'EXECUTE'), n.nspname, p.proname
  FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
 WHERE ${inSchema} AND lower(p.proname) = $2 ORDER BY p.proname = $2 DESC LIMIT 1`;

type Query = (sql: string, values: readonly string[]) => Promise<(string | null)[][]>;

/** Creates the cache of table definitions of one session; `clear` is called after DDL of any session. */
export function createTableCatalog(query: Query, types: UserTypes, collation: Collation): TableCatalog {
  const tables = new Map<string, TableDefinition | undefined>();
  const procedures = new Map<string, Procedure>();
  const functions = new Map<string, UserFunction>();
  const spellings = new Map<string, ReadonlyMap<string, string>>();
  const key = ({ schema, name }: ObjectName) => `${schema}.${name}`;
  return {
    async procedure(name) {
      const cached = procedures.get(key(name));
      if (cached !== undefined) return cached;
      const [row] = await query(procedureQuery, [name.schema, name.name]);
      if (row === undefined) return undefined;
      const parsed = parseModuleText(row[0] ?? "");
      if (parsed.kind !== "procedure") return undefined;
      const definition = { ...parsed, parameters: await types.resolve(parsed.parameters) };
      const found = { definition, isExecutable: row[1] === "t" };
      procedures.set(key(name), found);
      return found;
    },
    async module(name) {
      const [row] = await query(routineQuery, [name.schema, name.name]);
      if (row === undefined) return undefined;
      return parseModuleHeader(row[0] ?? "") ?? "foreign";
    },
    async loadFunctions(names) {
      for (const name of names) {
        if (functions.has(key(name))) continue;
        const [row] = await query(routineQuery, [name.schema, name.name]);
        const stored = row === undefined ? undefined : parseModuleHeader(row[0] ?? "");
        if (row === undefined || stored === undefined) continue;
        const parsed = parseModuleText(stored.text);
        if (parsed.kind !== "function") continue;
        const definition = {
          ...parsed,
          parameters: await types.resolve(parsed.parameters),
          returns: await types.resolve(parsed.returns),
        };
        const columns = stored.columns?.map(columnOf);
        const own = { ...name, schema: row[2] ?? "", name: row[3] ?? "" };
        functions.set(key(name), { name: own, definition, columns, isExecutable: row[1] === "t" });
      }
    },
    findFunction: (name) => functions.get(key(name)),
    async load(names) {
      for (const name of names) {
        if (tables.has(key(name))) continue;
        const rows = await query(columnsQuery, [name.schema, name.name]);
        const table = tableOf(name, rows, collation, spellings.get(key(name)));
        // Absent tables are not cached: a later statement of the batch may create them.
        if (table !== undefined) tables.set(key(name), table);
      }
    },
    find: (name) => tables.get(key(name)),
    spell: (name, columns) => spellings.set(key(name), new Map(columns.map((each) => [each.toLowerCase(), each]))),
    clear() {
      tables.clear();
      procedures.clear();
      functions.clear();
      types.clear();
    },
  };
}

function columnOf({ name: spelling, type, isNullable }: ModuleColumn): ColumnSource {
  return { name: spelling.toLowerCase(), spelling, type, isNullable };
}

function tableOf(
  name: ObjectName,
  rows: readonly (string | null)[][],
  service: Collation,
  spellings?: ReadonlyMap<string, string>,
): TableDefinition | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  const tableRows = rows.filter((row) => row[0] === first[0] && row[1] === first[1]);
  const columns = tableRows.map(
    ([, , attribute, domain, oid, typmod, nullable, identity, generated, spelling, , , backend]): ColumnSource => {
      const base = (domain == null ? undefined : typeOfDomain(domain)) ?? typeOfOid(Number(oid), Number(typmod));
      const collation = isCharacter(base) && backend != null ? collationOfBackend(backend) : service;
      const type = collation.name === service.name ? base : { ...base, collation: collation.name };
      return {
        name: attribute ?? "",
        spelling: spellings?.get(attribute ?? "") ?? spelling ?? "",
        type,
        isNullable: nullable === "t",
        isIdentity: identity !== "",
        isComputed: generated !== "",
      };
    },
  );
  const primaryKey = tableRows
    .filter((row) => row[10] !== null)
    .sort((left, right) => Number(left[10]) - Number(right[10]))
    .map((row) => row[2] ?? "");
  const schema = name.schema === temporarySchema ? temporarySchema : (first[0] ?? "");
  return { schema, name: first[1] ?? "", columns, primaryKey, isView: first[11] === "t" };
}
