import { lookUp } from "@holdfast/common/look-up.ts";
import type { Path } from "../parse/ast.ts";
import { SqlError } from "../run/sql-error.ts";

export interface ObjectName {
  /** Schema of PostgreSQL. */
  readonly schema: string;
  /** Lower-case name of the object; a temporary table begins with #. */
  readonly name: string;
  /** Path in the client's spelling, such as `dbo.Orders`. */
  readonly written: string;
}

export const temporarySchema = "pg_temp";
/** Schemas with views for T-SQL, by the name that clients write: PostgreSQL has its own `information_schema`. */
const schemaNames: Readonly<Record<string, string>> = { information_schema: "tsql_information_schema" };
const systemSchemas = ["sys", "information_schema"];
const systemDatabases = ["master", "tempdb", "msdb", "model"];

/** Resolves `[database.][schema.]object`. Error 911 for a database other than the service's and the system's. */
export function objectName(path: Path, database: string, line: number): ObjectName {
  const written = path.join(".");
  const name = (path.at(-1) ?? "").toLowerCase();
  const schema = (path.at(-2) ?? "").toLowerCase() || "dbo";
  const owner = path.at(-3)?.toLowerCase();
  const isSystem = owner !== undefined && systemDatabases.includes(owner) && systemSchemas.includes(schema);
  if (owner !== undefined && owner !== "" && owner !== database && !isSystem && !name.startsWith("#")) {
    const message = `Database '${path.at(-3)}' does not exist. The only database of this service is '${database}'.`;
    throw new SqlError(911, message, { line, feature: "other databases" });
  }
  if (name.startsWith("#")) return { schema: temporarySchema, name, written };
  return { schema: lookUp(schemaNames, schema) ?? schema, name, written };
}

/** Quotes a name for PostgreSQL. All identifiers of translated statements are printed by this function. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""').replaceAll("\0", "")}"`;
}

export function qualified({ schema, name }: { readonly schema: string; readonly name: string }): string {
  return `${quoteName(schema)}.${quoteName(name)}`;
}
