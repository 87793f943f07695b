import { lookUp } from "@holdfast/common/look-up.ts";
import type { Path } from "../parse/ast.ts";
import { SqlError } from "../run/sql-error.ts";

export interface ObjectName {
  /** Schema of PostgreSQL. */
  readonly schema: string;
  /** In lower case; a temporary table begins with #. */
  readonly name: string;
  /** As the client wrote it. */
  readonly written: string;
}

export const temporarySchema = "pg_temp";
/** Views that have the columns of T-SQL; `information_schema` itself is PostgreSQL's. */
const schemaNames: Readonly<Record<string, string>> = { information_schema: "tsql_information_schema" };
const systemSchemas = ["sys", "information_schema"];
const systemDatabases = ["master", "tempdb", "msdb", "model"];

/** Resolves `[database.][schema.]object` in the layout single-db. */
export function objectName(path: Path, database: string, line: number): ObjectName {
  const written = path.join(".");
  const name = (path.at(-1) ?? "").toLowerCase();
  const schema = (path.at(-2) ?? "").toLowerCase() || "dbo";
  const owner = path.at(-3)?.toLowerCase();
  const isSystem = owner !== undefined && systemDatabases.includes(owner) && systemSchemas.includes(schema);
  if (owner !== undefined && owner !== "" && owner !== database && !isSystem && !name.startsWith("#")) {
    const message = `Database '${path.at(-3)}' does not exist: the layout single-db has one database, ${database}.`;
    throw new SqlError(911, message, { line });
  }
  if (name.startsWith("#")) return { schema: temporarySchema, name, written };
  return { schema: lookUp(schemaNames, schema) ?? schema, name, written };
}

/** Quotes a name for PostgreSQL: the only printer of identifiers. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""').replaceAll("\0", "")}"`;
}

export function qualified({ schema, name }: { readonly schema: string; readonly name: string }): string {
  return `${quoteName(schema)}.${quoteName(name)}`;
}
