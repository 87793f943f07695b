import { type LayoutMode, schemaPrefix } from "../bind/databases.ts";
import { quoteName } from "../bind/object-name.ts";
import type { Collation } from "../types/collation.ts";
import { literal } from "./literal.ts";

export interface InstallationOptions {
  readonly layoutMode: LayoutMode;
  readonly collation: Collation;
  /** Database of a session that names no other one; in the layout single-db the only one. */
  readonly defaultDatabase: string;
  /** Role that may create objects in the default database, and databases. */
  readonly administrators: string;
}

/**
 * The schema `dbo` of the default database, and functions that resolve databases and their schemas. In the layout
 * multi-db a database exists if its schema `dbo` does (`bind/databases.ts`); the comment on that schema has its name
 * in the spelling of CREATE DATABASE, and a front end sets the current database in `holdfast_tsql.database`.
 */
export function databases({ layoutMode, collation, defaultDatabase, administrators }: InstallationOptions): string {
  const dbo = quoteName(layoutMode === "multi-db" ? `${schemaPrefix(defaultDatabase)}dbo` : "dbo");
  const owner = quoteName(administrators);
  return `
CREATE SCHEMA IF NOT EXISTS ${dbo};
GRANT USAGE ON SCHEMA ${dbo} TO PUBLIC;
GRANT CREATE ON SCHEMA ${dbo} TO ${owner};
${layoutMode === "multi-db" ? severalDatabases(defaultDatabase, owner) : oneDatabase}
CREATE OR REPLACE FUNCTION holdfast_tsql.server_collation() RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT ${literal(collation.name)}::text
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.database_owner() RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT ${literal(administrators)}::text
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.last_part(name text, back int) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT lower(btrim(split_part(name COLLATE "C", '.', -back), '[]"'))
$$;

CREATE OR REPLACE FUNCTION holdfast_tsql.databases_with_system() RETURNS TABLE (name text, folded text, prefix text, id int)
LANGUAGE sql STABLE AS $$
  SELECT s.name, s.name, NULL, s.id FROM (VALUES ('master', 1), ('tempdb', 2), ('model', 3), ('msdb', 4)) AS s (name, id)
  UNION ALL
  SELECT d.name, d.folded, d.prefix, d.id FROM holdfast_tsql.databases d
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.database_id(name text) RETURNS int LANGUAGE sql STABLE AS $$
  SELECT d.id FROM holdfast_tsql.databases_with_system() d
   WHERE d.folded COLLATE "C" = lower(rtrim($1 COLLATE "C") COLLATE "und-x-icu") COLLATE "C" LIMIT 1
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.database_name(id int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT d.name FROM holdfast_tsql.databases_with_system() d WHERE d.id = $1
$$;

-- The schema of an object by its name, such as database.schema.object.
CREATE OR REPLACE FUNCTION holdfast_tsql.schema_of_object(name text) RETURNS oid LANGUAGE sql STABLE AS $$
  SELECT n.oid FROM (VALUES (COALESCE(NULLIF(holdfast_tsql.last_part(name COLLATE "C", 2), ''), 'dbo'), NULLIF(holdfast_tsql.last_part(name COLLATE "C", 3), '')))
      AS parts (schema_part, database_part)
    CROSS JOIN LATERAL (SELECT CASE WHEN database_part IS NULL THEN holdfast_tsql.current_prefix()
      ELSE (SELECT d.prefix FROM holdfast_tsql.databases d WHERE d.folded COLLATE "C" = lower(database_part COLLATE "und-x-icu") COLLATE "C") END AS prefix) p
    JOIN pg_namespace n ON n.nspname = holdfast_tsql.schema_in(p.prefix, schema_part)
$$;

-- The rows of a view of the catalog, such as sys.tables, for another database than the current one.
CREATE OR REPLACE FUNCTION holdfast_tsql.in_database(database_name text, database_prefix text, row_type anyelement)
RETURNS SETOF anyelement LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own_name text := COALESCE(current_setting('holdfast_tsql.database', true), '');
  own_prefix text := COALESCE(current_setting('holdfast_tsql.prefix', true), '');
BEGIN
  PERFORM set_config('holdfast_tsql.prefix', database_prefix, false), set_config('holdfast_tsql.database',
    COALESCE((SELECT d.name FROM holdfast_tsql.databases d WHERE d.prefix = database_prefix), database_name), false);
  RETURN QUERY EXECUTE format('SELECT * FROM %s', pg_typeof(row_type));
  PERFORM set_config('holdfast_tsql.prefix', own_prefix, false), set_config('holdfast_tsql.database', own_name, false);
END
$$;
`;
}

const systemSchemas = "'^(pg_|holdfast_tsql$|tsql_information_schema$|information_schema$|public$)'";

const oneDatabase = `
CREATE OR REPLACE VIEW holdfast_tsql.databases AS
SELECT current_database()::text AS name, lower(current_database()::text) AS folded, ''::text AS prefix, 5 AS id;
GRANT SELECT ON holdfast_tsql.databases TO PUBLIC;
CREATE OR REPLACE FUNCTION holdfast_tsql.current_database_name() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT current_database()::text
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.current_prefix() RETURNS text LANGUAGE sql STABLE AS $$ SELECT ''::text $$;
CREATE OR REPLACE FUNCTION holdfast_tsql.schema_in(prefix text, name text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT prefix || name
$$;
-- The name of a schema in T-SQL; NULL for a schema outside of the current database.
CREATE OR REPLACE FUNCTION holdfast_tsql.schema_label(schema_name name) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN schema_name !~ ${systemSchemas} THEN schema_name::text END
$$;
`;

function severalDatabases(defaultDatabase: string, owner: string): string {
  const prefix = literal(schemaPrefix(defaultDatabase));
  return `
DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO %s', current_database(), ${literal(owner)}); END $$;
-- Names of databases are doubled underscores before the first odd run of them; long names are in comments alone.
CREATE OR REPLACE VIEW holdfast_tsql.databases AS
SELECT CASE WHEN c.digest OR lower(c.spelling COLLATE "und-x-icu") = c.folded THEN COALESCE(c.spelling, c.prefix) ELSE c.folded END AS name,
       CASE WHEN c.digest THEN COALESCE(lower(c.spelling COLLATE "und-x-icu"), c.prefix) ELSE c.folded END AS folded,
       c.prefix, CASE WHEN c.prefix = ${prefix} THEN 5 ELSE c.oid::int8::int END AS id
  FROM (
    SELECT n.oid, left(n.nspname::text, -3) AS prefix, starts_with(n.nspname::text, '$#') AS digest,
           replace(regexp_replace(left(n.nspname::text, -4), '^[$]', ''), '__', '_') AS folded,
           CASE WHEN pg_input_is_valid(obj_description(n.oid, 'pg_namespace'), 'jsonb')
             THEN obj_description(n.oid, 'pg_namespace')::jsonb ->> 'tsql_database' END AS spelling
      FROM pg_namespace n
     WHERE n.nspname ~ '^([^_]|__)+_dbo$' AND n.nspname !~ '[A-Z]'
       AND n.nspname !~ '^(pg_|(holdfast|information|mdb|tsql)_dbo$)'
  ) AS c;
GRANT SELECT ON holdfast_tsql.databases TO PUBLIC;
CREATE OR REPLACE FUNCTION holdfast_tsql.current_database_name() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT COALESCE(NULLIF(current_setting('holdfast_tsql.database', true), ''), ${literal(defaultDatabase)})
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.current_prefix() RETURNS text LANGUAGE sql STABLE AS $$
  SELECT COALESCE(NULLIF(current_setting('holdfast_tsql.prefix', true), ''), ${prefix})
$$;
CREATE OR REPLACE FUNCTION holdfast_tsql.schema_in(prefix text, name text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT prefix || CASE WHEN left(name, 1) IN ('_', '$') THEN '$' ELSE '' END || name
$$;
-- The name of a schema in T-SQL; NULL for a schema outside of the current database.
CREATE OR REPLACE FUNCTION holdfast_tsql.schema_label(schema_name name) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN schema_name = 'sys' THEN 'sys'
    WHEN starts_with(schema_name::text, holdfast_tsql.current_prefix())
      AND substr(schema_name::text, length(holdfast_tsql.current_prefix()) + 1) ~ '^[^_]'
    THEN regexp_replace(substr(schema_name::text, length(holdfast_tsql.current_prefix()) + 1), '^[$]', '')
  END
$$;
`;
}
