import { defaultDatabase, defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { consoleRoleSql, statisticsExtension, statisticsSql } from "./additions.ts";
import { groups, platform, platformSchemas } from "./layout.ts";
import { createRole } from "./put-user.ts";
import { singleInput } from "./single-user.ts";

/**
 * What every instance has inside before its first start, for PostgreSQL's single-user mode in template1: statements end
 * with a semicolon and an empty line (option -j).
 *
 * - The groups own nothing and nobody signs in as one. What they may do is granted object by object as users make them, by
 *   an event trigger in each database, so pg_read_all_data and its like, which reach into platform schemas, are not needed.
 * - The trigger's function runs as the superuser: its search_path is pinned, names come from the catalog by oid and are
 *   quoted, and it runs GRANT only, which calls no code of users.
 * - The triggers are in both templates, so no database lacks them; ENABLE ALWAYS holds under replication roles too.
 * - Admins end sessions of roles that they are members of. PostgreSQL's role for that reaches every role that is no superuser, and so
 *   the platform's.
 * - Users of the default user's kind may do everything with their databases and roles, and nothing to the machine:
 *   CREATEROLE gives rights over roles only to who made them (from version 16 on).
 */
export function platformSql(version: string): string {
  const statements = [
    `CREATE ROLE ${groups.readonly} NOLOGIN`,
    `CREATE ROLE ${groups.readwrite} NOLOGIN`,
    `CREATE ROLE ${groups.admin} NOLOGIN`,
    `GRANT pg_monitor, ${groups.readwrite} TO ${groups.admin}`,
    `CREATE ROLE ${defaultUser} NOLOGIN CREATEDB ${createRole(version)}`,
    `GRANT ${groups.admin} TO ${defaultUser}`,
    "REVOKE CONNECT, TEMPORARY ON DATABASE template1 FROM PUBLIC",
    `GRANT CONNECT ON DATABASE template1 TO ${groups.admin}`,
    "DROP DATABASE postgres",

    // Made in template1 only so that the platform's database is born with them; it needs no session of its own.
    `CREATE SCHEMA ${platform}`,
    ...ownTables(false),
    // Made here so that it is in the platform's database and in the default one, and then in no other.
    ...statisticsSql,
    `CREATE DATABASE ${platform}`,
    `REVOKE ALL ON DATABASE ${platform} FROM PUBLIC`,
    `DROP TABLE ${platform}.heartbeat, ${platform}.instance`,

    ...trigger,
    `CREATE DATABASE ${defaultDatabase} OWNER ${defaultUser}`,
    `DROP EXTENSION ${statisticsExtension}`,
    ...consoleRoleSql,
  ];
  return singleInput(statements);
}

function ownTables(usersMade: boolean): string[] {
  return [
    `CREATE TABLE ${platform}.heartbeat (one boolean PRIMARY KEY DEFAULT true CHECK (one), at timestamptz NOT NULL)`,
    `INSERT INTO ${platform}.heartbeat (at) VALUES (now())`,
    `CREATE TABLE ${platform}.instance (one boolean PRIMARY KEY DEFAULT true CHECK (one), users_made boolean NOT NULL)`,
    `INSERT INTO ${platform}.instance (users_made) VALUES (${usersMade})`,
  ];
}

/** The tables of the platform's database anew, for upgraded data: whoever is to be there came with them. */
export function ownTablesSql(): string {
  return singleInput(ownTables(true));
}

/** The same trigger for template0, in a session of its own: databases made from it must not lack the trigger. */
export function template0Sql(): string {
  return singleInput([`CREATE SCHEMA ${platform}`, ...trigger]);
}

const tags = [
  "CREATE SCHEMA",
  "CREATE TABLE",
  "CREATE TABLE AS",
  "SELECT INTO",
  "CREATE VIEW",
  "CREATE MATERIALIZED VIEW",
  "CREATE FOREIGN TABLE",
  "IMPORT FOREIGN SCHEMA",
  "CREATE SEQUENCE",
  // A serial column that is added makes a sequence.
  "ALTER TABLE",
]
  .map((tag) => `'${tag}'`)
  .join(", ");

const schemaNames = platformSchemas.map((schema) => `'${schema}'`).join(", ");

const grantOnCreate = `CREATE FUNCTION ${platform}.grant_on_create() RETURNS event_trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
  made record;
BEGIN
  FOR made IN
    SELECT 'SCHEMA' AS kind, format('%I', n.nspname) AS name
      FROM pg_event_trigger_ddl_commands() d JOIN pg_namespace n ON d.classid = 'pg_namespace'::regclass AND d.objid = n.oid
      WHERE NOT d.in_extension AND n.nspname NOT IN (${schemaNames}) AND n.nspname !~ '^pg_'
    UNION ALL
    SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, format('%I.%I', n.nspname, c.relname)
      FROM pg_event_trigger_ddl_commands() d JOIN pg_class c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
        JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE NOT d.in_extension AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't'
        AND d.command_tag <> 'ALTER TABLE' AND n.nspname NOT IN (${schemaNames}) AND n.nspname !~ '^pg_'
  LOOP
    IF made.kind = 'SCHEMA' THEN
      EXECUTE format('GRANT USAGE ON SCHEMA %s TO ${groups.readonly}, ${groups.readwrite}', made.name);
    ELSIF made.kind = 'SEQUENCE' THEN
      EXECUTE format('GRANT SELECT ON SEQUENCE %s TO ${groups.readonly}', made.name);
      EXECUTE format('GRANT SELECT, USAGE, UPDATE ON SEQUENCE %s TO ${groups.readwrite}', made.name);
    ELSE
      EXECUTE format('GRANT SELECT ON TABLE %s TO ${groups.readonly}', made.name);
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON TABLE %s TO ${groups.readwrite}', made.name);
    END IF;
  END LOOP;
END
$body$`;

const trigger = [
  grantOnCreate,
  `REVOKE ALL ON FUNCTION ${platform}.grant_on_create() FROM PUBLIC`,
  `CREATE EVENT TRIGGER holdfast_grant_on_create ON ddl_command_end WHEN TAG IN (${tags}) EXECUTE FUNCTION ${platform}.grant_on_create()`,
  "ALTER EVENT TRIGGER holdfast_grant_on_create ENABLE ALWAYS",
];
