import { codeOf, type Session } from "./session.ts";

const setting = "local_preload_libraries";

/**
 * Statements that reset the setting for a database, a role, or both. Every role may set it, and every session of it
 * then ends at once, its owner's too: no image has a library that it could load. Sessions of the platform have a value
 * of their own.
 */
const resetStatements = `
  SELECT CASE
      WHEN setrole = 0 AND setdatabase = 0 THEN 'ALTER ROLE ALL RESET ${setting}'
      WHEN setrole = 0 THEN format('ALTER DATABASE %I RESET ${setting}', datname)
      WHEN setdatabase = 0 THEN format('ALTER ROLE %I RESET ${setting}', rolname)
      ELSE format('ALTER ROLE %I IN DATABASE %I RESET ${setting}', rolname, datname) END AS statement
  FROM pg_db_role_setting
    LEFT JOIN pg_database ON pg_database.oid = setdatabase
    LEFT JOIN pg_roles ON pg_roles.oid = setrole
  WHERE EXISTS (SELECT FROM unnest(setconfig) AS each WHERE each LIKE '${setting.replaceAll("_", "\\_")}=%')
  ORDER BY random() LIMIT 8`;

/** A user drops or changes the object meanwhile, or has it locked; the next observation resets what remains. */
const concurrent = ["3D000", "42704", "XX000", "55P03"];

/**
 * Removes stored values of `local_preload_libraries`, which would shut users out of their databases. Waits for users'
 * locks for a moment only, also in later statements of the session.
 */
export async function resetPreloadSettings(session: Session): Promise<void> {
  const statements = await session.rows<{ statement: string }>(resetStatements);
  if (statements.length > 0) await session.rows("SET lock_timeout = '100ms'");
  for (const { statement } of statements) {
    try {
      await session.rows(statement);
    } catch (error) {
      if (!concurrent.includes(codeOf(error))) throw error;
      return;
    }
  }
}
