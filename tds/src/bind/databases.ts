import { createHash } from "node:crypto";
import { SqlError } from "../run/sql-error.ts";

/** Layout of a service's names: one database with schemas of PostgreSQL, or several databases with schemas each. */
export type LayoutMode = "single-db" | "multi-db";

/** The databases that names of a session refer to. */
export interface Databases {
  readonly layoutMode: LayoutMode;
  /** Current database, in lower case. */
  readonly database: string;
}

/** A database by its name in lower case, with the spelling of its creation. */
export interface DatabaseName {
  readonly folded: string;
  readonly spelling: string;
}

const systemDatabases = ["master", "tempdb", "msdb", "model"];

/** True for the databases of the system, which every service has; they contain the views of the catalog only. */
export function isSystemDatabase(folded: string): boolean {
  return systemDatabases.includes(folded);
}

/** First parts of schemas of the platform, such as `holdfast_tsql`: databases of these names have other prefixes. */
const reserved: readonly string[] = ["holdfast", "information", "mdb", "pg", "tsql"];
/** PostgreSQL's limit of names is 63 bytes; the rest is for the schema. */
const prefixBytesMax = 33;
const nameBytesMax = 63;

/**
 * Prefix of the schemas of a database in the layout multi-db. It ends with an underscore, and those in the name are
 * doubled, so the first odd run of underscores ends the prefix: no two databases have a schema in common. A prefix
 * begins with `$` if it would be that of a schema of the platform, or a digest of a long name.
 */
export function schemaPrefix(database: string): string {
  const folded = database.toLowerCase();
  const isReserved = /^(?:\$|pg_)/.test(folded) || reserved.includes(folded);
  const prefix = `${isReserved ? "$" : ""}${folded.replaceAll("_", "__")}_`;
  if (Buffer.byteLength(prefix) <= prefixBytesMax) return prefix;
  return `$#${createHash("sha256").update(folded).digest("hex").slice(0, 24)}_`;
}

/** Schema of PostgreSQL for a schema of a database in the layout multi-db. Error 103 for a name that is too long. */
export function schemaOf(database: string, schema: string, line: number): string {
  if (!isPlain(database) || !isPlain(schema))
    throw new SqlError(102, "A name contains a character that is not permitted.", { severity: 15, line });
  // An underscore at the start of the schema would belong to the name of the database.
  const name = `${schemaPrefix(database)}${/^[_$]/.test(schema) ? "$" : ""}${schema.toLowerCase()}`;
  if (Buffer.byteLength(name) > nameBytesMax) {
    const message = `The schema name '${schema.slice(0, 32)}' is too long in the database '${database}'.`;
    throw new SqlError(103, message, { severity: 15, line });
  }
  return name;
}

/** False for names that PostgreSQL cannot store as they are. */
export function isPlain(name: string): boolean {
  return !name.includes("\0") && name.isWellFormed();
}
