import { defaultDatabase, defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import type { Instance } from "../engine-driver.ts";
import { isAboutDatabase } from "./database-list.ts";
import { consoleRole, groups } from "./layout.ts";
import { codeOf, type Session, withSession } from "./session.ts";

export const statisticsExtension = "pg_stat_statements";

/** The query console's login: what readers may, in transactions that only read. It has no password: the socket admits it. */
export const consoleRoleSql = [
  `CREATE ROLE ${consoleRole} LOGIN CONNECTION LIMIT 8 IN ROLE ${groups.readonly}`,
  `ALTER ROLE ${consoleRole} SET default_transaction_read_only = on`,
  // Users cannot set these, so no connection can.
  `ALTER ROLE ${consoleRole} SET temp_file_limit = '256MB'`,
  `ALTER ROLE ${consoleRole} SET "pg_stat_statements.track" = 'none'`,
];

/** What counts queries, and the right of users to begin its count anew. */
export const statisticsSql = [
  `CREATE EXTENSION IF NOT EXISTS ${statisticsExtension} SCHEMA public`,
  `GRANT EXECUTE ON FUNCTION public.pg_stat_statements_reset TO ${defaultUser}`,
];

/** PostgreSQL's role that ends sessions of any role but superusers. */
const signalRole = "pg_signal_backend";
const adminsSignal = `pg_has_role('${groups.admin}', '${signalRole}', 'MEMBER')`;

/** SQL for the platform's database: true when it is as the statements below leave it. */
export const hasAdditions = `EXISTS (SELECT FROM pg_extension WHERE extname = '${statisticsExtension}')
  AND EXISTS (SELECT FROM pg_roles WHERE rolname = '${consoleRole}') AND NOT ${adminsSignal}`;

/** For data that an older version made. The platform's database comes last: it says that all is done. */
export async function addMissing(instance: Instance, session: Session, signal: AbortSignal): Promise<void> {
  const role = await session.rows("SELECT FROM pg_roles WHERE rolname = $1", [consoleRole]);
  if (role.length === 0) for (const statement of consoleRoleSql) await session.rows(statement);
  // Data of older versions let admins end sessions of the platform's roles.
  await session.rows(`REVOKE ${signalRole} FROM ${groups.admin}`);
  await inDefaultDatabase(instance, signal);
  await session.rows(`CREATE EXTENSION IF NOT EXISTS ${statisticsExtension} SCHEMA public`);
}

/**
 * Users own this database. Making the extension calls nothing of theirs: its script makes new functions, and fails where one
 * of the name is there; the right goes to the extension's own function, wherever a user has put it.
 */
async function inDefaultDatabase(instance: Instance, signal: AbortSignal): Promise<void> {
  const work = async (session: Session) => {
    await session.rows(`CREATE EXTENSION IF NOT EXISTS ${statisticsExtension} SCHEMA public`);
    const own = await session.rows<{ name: string }>(
      `SELECT p.oid::regprocedure::text AS name FROM pg_depend d
         JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
         JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
       WHERE e.extname = $1 AND p.proname = 'pg_stat_statements_reset'`,
      [statisticsExtension],
    );
    for (const { name } of own) await session.rows(`GRANT EXECUTE ON FUNCTION ${name} TO ${defaultUser}`);
  };
  try {
    await withSession(instance, signal, work, { database: defaultDatabase, statementMs: 10_000 });
  } catch (error) {
    // Users may have dropped their database or its schema, or have objects of these names: it is theirs.
    if (!isAboutDatabase(error) && !["3F000", "42723", "42P07", "42704"].includes(codeOf(error))) throw error;
  }
}
