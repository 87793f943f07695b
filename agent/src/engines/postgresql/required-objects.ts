import { defaultDatabase, defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import type { Instance } from "../engine-driver.ts";
import { isDatabaseUnavailable } from "./database-list.ts";
import { consoleRole, groups } from "./layout.ts";
import { codeOf, type Session, withSession } from "./session.ts";

export const statisticsExtension = "pg_stat_statements";

/**
 * Login of the query console: privileges of readers, in read-only transactions. It has no password and connects over
 * the socket.
 */
export const consoleRoleSql = [
  `CREATE ROLE ${consoleRole} LOGIN CONNECTION LIMIT 8 IN ROLE ${groups.readonly}`,
  `ALTER ROLE ${consoleRole} SET default_transaction_read_only = on`,
  // Only a superuser may set these, so no session of the role can change them.
  // Each console statement sets this limit again, by the free space (temporary-files.ts).
  `ALTER ROLE ${consoleRole} SET temp_file_limit = '16MB'`,
  `ALTER ROLE ${consoleRole} SET "pg_stat_statements.track" = 'none'`,
];

/** Extension that counts queries, and the users' privilege to reset it. */
export const statisticsSql = [
  `CREATE EXTENSION IF NOT EXISTS ${statisticsExtension} SCHEMA public`,
  `GRANT EXECUTE ON FUNCTION public.pg_stat_statements_reset TO ${defaultUser}`,
];

/** PostgreSQL's role that may end sessions of any role except superusers. */
const signalRole = "pg_signal_backend";
const adminsMaySignal = `pg_has_role('${groups.admin}', '${signalRole}', 'MEMBER')`;

/** SQL for the platform's database: true if everything that `createMissingObjects` creates exists. */
export const hasRequiredObjects = `EXISTS (SELECT FROM pg_extension WHERE extname = '${statisticsExtension}')
  AND EXISTS (SELECT FROM pg_roles WHERE rolname = '${consoleRole}') AND NOT ${adminsMaySignal}`;

/**
 * Creates the console's role and the statistics extension where they are missing, as after an upgrade with pg_upgrade.
 * The platform's database comes last: its extension marks completion.
 */
export async function createMissingObjects(instance: Instance, session: Session, signal: AbortSignal): Promise<void> {
  const role = await session.rows("SELECT FROM pg_roles WHERE rolname = $1", [consoleRole]);
  if (role.length === 0) for (const statement of consoleRoleSql) await session.rows(statement);
  // Admins could otherwise end sessions of the platform's roles.
  await session.rows(`REVOKE ${signalRole} FROM ${groups.admin}`);
  await createInDefaultDatabase(instance, signal);
  await session.rows(`CREATE EXTENSION IF NOT EXISTS ${statisticsExtension} SCHEMA public`);
}

/**
 * Creates the required objects in the default database, which users own. Creating the extension runs no code of users:
 * its script creates new functions and fails if one of these names exists. The privilege is granted on the extension's
 * function, in any schema.
 */
async function createInDefaultDatabase(instance: Instance, signal: AbortSignal): Promise<void> {
  const work = async (session: Session) => {
    await session.rows(`CREATE EXTENSION IF NOT EXISTS ${statisticsExtension} SCHEMA public`);
    const functions = await session.rows<{ name: string }>(
      `SELECT p.oid::regprocedure::text AS name FROM pg_depend d
         JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
         JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
       WHERE e.extname = $1 AND p.proname = 'pg_stat_statements_reset'`,
      [statisticsExtension],
    );
    for (const { name } of functions) await session.rows(`GRANT EXECUTE ON FUNCTION ${name} TO ${defaultUser}`);
  };
  try {
    await withSession(instance, signal, work, { database: defaultDatabase, statementMs: 10_000 });
  } catch (error) {
    // Users may have dropped the database or its schema, or have objects of these names: leave them as they are.
    if (!isDatabaseUnavailable(error) && !["3F000", "42723", "42P07", "42704"].includes(codeOf(error))) throw error;
  }
}
