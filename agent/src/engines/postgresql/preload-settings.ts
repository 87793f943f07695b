import { codeOf, type Session } from "./session.ts";

const setting = "local_preload_libraries";

/**
 * Statements that reset the setting for a database, a role, or both. Every role may set it, but no image has a library
 * that it could load, so all later sessions of that database or role fail, including those of its owner. Sessions of
 * the platform override the setting.
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

/** SQLSTATEs of an object that a user drops, changes or locks concurrently; the next observation tries again. */
const concurrent = ["3D000", "42704", "XX000", "55P03"];

/**
 * Removes stored values of `local_preload_libraries`, which would lock users out of their databases. Sets a short lock
 * timeout, which also applies to later statements of the session.
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
