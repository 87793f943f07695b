import { defaultDatabase, defaultUser, maintenanceDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { consoleRoleSql, statisticsExtension, statisticsSql } from "./required-objects.ts";
import { groups, platform, platformSchemas } from "./layout.ts";
import { createRole } from "./put-user.ts";
import { singleUserInput } from "./single-user.ts";

/**
 * Contents of every instance before its first start, as statements for single-user mode in template1: each ends with a
 * semicolon and an empty line (option -j).
 *
 * - The group roles own nothing and cannot sign in. An event trigger in each database grants them privileges on each
 *   object that users create, so pg_read_all_data and the like, which include the platform's schemas, are not needed.
 * - The trigger's function runs as the superuser: its search_path is pinned, names come quoted from the catalog by OID,
 *   and it runs GRANT only, which calls no code of users.
 * - Both templates have the trigger, so every database has it; ENABLE ALWAYS covers replication roles too.
 * - Admins end sessions of roles that they are members of. pg_signal_backend would include the platform's roles, which
 *   are not superusers.
 * - Users with the default user's role may do anything with their databases and roles, and nothing to the machine:
 *   since version 16 CREATEROLE gives privileges only over roles that the user created.
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
    // Created again below with the trigger, as a database of users.
    `DROP DATABASE ${maintenanceDatabase}`,

    // Created in template1, of which the platform's database is a copy, so that this needs no second session.
    `CREATE SCHEMA ${platform}`,
    ...ownTables(false),
    // Created here so that the platform's database and the default one have it, and later ones do not.
    ...statisticsSql,
    `CREATE DATABASE ${platform}`,
    `REVOKE ALL ON DATABASE ${platform} FROM PUBLIC`,
    `DROP TABLE ${platform}.heartbeat, ${platform}.instance`,

    ...trigger,
    `CREATE DATABASE ${defaultDatabase} OWNER ${defaultUser}`,
    `DROP EXTENSION ${statisticsExtension}`,
    `CREATE DATABASE ${maintenanceDatabase} OWNER ${defaultUser}`,
    ...consoleRoleSql,
  ];
  return singleUserInput(statements);
}

function ownTables(usersCreated: boolean): string[] {
  return [
    `CREATE TABLE ${platform}.heartbeat (one boolean PRIMARY KEY DEFAULT true CHECK (one), at timestamptz NOT NULL)`,
    `INSERT INTO ${platform}.heartbeat (at) VALUES (now())`,
    `CREATE TABLE ${platform}.instance (one boolean PRIMARY KEY DEFAULT true CHECK (one), users_made boolean NOT NULL)`,
    `INSERT INTO ${platform}.instance (users_made) VALUES (${usersCreated})`,
  ];
}

/** Recreates the tables of the platform's database in upgraded data, which already contain all users. */
export function ownTablesSql(): string {
  return singleUserInput(ownTables(true));
}

/**
 * Creates the trigger in template0, in a separate session: databases created from template0 need it too. Its locale
 * provider becomes libc, whose `C.UTF-8` sorts like the builtin one: CREATE DATABASE without a provider has that of its
 * template, and dumps of pg_dump before version 15 name locales of libc without it.
 */
export function template0Sql(): string {
  const provider =
    "UPDATE pg_catalog.pg_database SET datlocprovider = 'c', datlocale = NULL WHERE datname = 'template0'";
  return singleUserInput([`CREATE SCHEMA ${platform}`, ...trigger, provider]);
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
  // Adding a serial column creates a sequence.
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
