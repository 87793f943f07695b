import { lookUp } from "@holdfast/common/look-up.ts";
import { type Databases, isSystemDatabase, schemaOf } from "./databases.ts";
import type { Path } from "../parse/ast.ts";
import { SqlError } from "../run/sql-error.ts";

export interface ObjectName {
  /** Schema of PostgreSQL. */
  readonly schema: string;
  /** Lower-case name of the object; a temporary table begins with #. */
  readonly name: string;
  /** Path in the client's spelling, such as `dbo.Orders`. */
  readonly written: string;
  /** Only of a view of the catalog in the layout multi-db: the database that it describes, in lower case. */
  readonly catalogOf?: string;
}

export const temporarySchema = "pg_temp";
/** Schemas with views for T-SQL, by the name that clients write: PostgreSQL has its own `information_schema`. */
const schemaNames: Readonly<Record<string, string>> = { information_schema: "tsql_information_schema" };
const systemSchemas = ["sys", "information_schema"];

/**
 * Resolves `[database.][schema.]object`. In the layout single-db, error 911 for a database other than the service's and
 * the system's; in multi-db, an object of an unknown database is unknown.
 */
export function objectName(path: Path, databases: Databases, line: number): ObjectName {
  const written = path.join(".");
  const name = (path.at(-1) ?? "").toLowerCase();
  const schema = (path.at(-2) ?? "").toLowerCase() || "dbo";
  const owner = (path.at(-3) ?? "").toLowerCase();
  if (name.startsWith("#")) return { schema: temporarySchema, name, written };
  const isCatalog = systemSchemas.includes(schema);
  const catalog = lookUp(schemaNames, schema) ?? schema;
  const { database, layoutMode } = databases;
  if (layoutMode === "multi-db") {
    const home = owner === "" ? database : owner;
    if (isCatalog) return { schema: catalog, name, written, catalogOf: home };
    return { schema: schemaOf(home, schema, line), name, written };
  }
  if (owner !== "" && owner !== database && !(isCatalog && isSystemDatabase(owner))) {
    const message = `Database '${path.at(-3)}' does not exist. The only database of this service is '${database}': its layout is single-db.`;
    throw new SqlError(911, message, { line, feature: "other databases" });
  }
  return { schema: catalog, name, written };
}

/** Quotes a name for PostgreSQL. All identifiers of translated statements are printed by this function. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""').replaceAll("\0", "")}"`;
}

export function qualified({ schema, name }: { readonly schema: string; readonly name: string }): string {
  return `${quoteName(schema)}.${quoteName(name)}`;
}
