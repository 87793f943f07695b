import { schemaPrefix } from "../bind/databases.ts";
import { quoteName } from "../bind/object-name.ts";
import { escapeLiteral } from "../run/backend.ts";

/**
 * Statements that create a database of the layout multi-db, in one transaction: its schema `dbo`, whose comment has its
 * name in the spelling of its creation. `mark` is part of the comment too.
 */
export function createDatabaseSql(name: string, owner: string, mark = ""): string[] {
  const schema = quoteName(`${schemaPrefix(name)}dbo`);
  const comment = JSON.stringify({ tsql_database: name, ...(mark !== "" && { mark }) });
  return [
    `CREATE SCHEMA ${schema} AUTHORIZATION ${quoteName(owner)}`,
    `GRANT USAGE ON SCHEMA ${schema} TO PUBLIC`,
    `COMMENT ON SCHEMA ${schema} IS ${escapeLiteral(comment)}`,
  ];
}

/** The schemas of a database by its prefix. */
export const schemasQuery = `
SELECT oid::text AS oid, nspname::text AS nspname FROM pg_catalog.pg_namespace
 WHERE starts_with(nspname::text, $1) AND substr(nspname::text, length($1) + 1) ~ '^[^_]'`;

/** A view, or a table with a foreign key, that uses a table of these schemas from outside of them. */
export const dependentQuery = `
SELECT n.nspname || '.' || v.relname AS name
  FROM pg_catalog.pg_depend d
  JOIN pg_catalog.pg_class t ON d.refclassid = 'pg_catalog.pg_class'::regclass AND t.oid = d.refobjid
  LEFT JOIN pg_catalog.pg_rewrite r ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid
  LEFT JOIN pg_catalog.pg_constraint k ON d.classid = 'pg_catalog.pg_constraint'::regclass AND k.oid = d.objid
  JOIN pg_catalog.pg_class v ON v.oid = COALESCE(r.ev_class, k.conrelid)
  JOIN pg_catalog.pg_namespace n ON n.oid = v.relnamespace
 WHERE t.relnamespace = ANY ($1::oid[]) AND v.relnamespace <> ALL ($1::oid[])
 LIMIT 1`;

/** Statement that drops the schemas of a database. */
export function dropDatabaseSql(schemas: readonly string[]): string {
  return `DROP SCHEMA ${schemas.map(quoteName).join(", ")} CASCADE`;
}
