import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import type { Instance } from "../engine-driver.ts";
import { roleOf } from "../members.ts";
import { documentRoles } from "../postgresql/layout.ts";
import { identifier, literal, type Session, withSession } from "../postgresql/session.ts";
import { asPostgresql } from "./as-postgresql.ts";
import { createMarksSql, createOnce, hasMarksSql } from "./databases.ts";

/** Role of DocumentDB that may call its functions and use all documents. */
const documentsRole = "documentdb_admin_role";

const isComplete = `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'documentdb') AND ${hasMarksSql}
  AND (SELECT count(*) = $2 FROM pg_auth_members m JOIN pg_roles u ON u.oid = m.member JOIN pg_roles g ON g.oid = m.roleid
    WHERE u.rolname = ANY ($1::text[]) AND g.rolname = '${documentsRole}') AS complete`;

/**
 * Creates the extension DocumentDB, the roles of the two processes of FerretDB, and the databases of the service's
 * first settings. Both roles are plain ones, which may neither create roles nor become another; sessions of readers
 * start no transaction that writes.
 */
export async function ensureSchema(instance: Instance, signal: AbortSignal): Promise<void> {
  // A replica gets all of this from its primary.
  if (roleOf(instance.spec) !== "primary") return;
  const install = async (session: Session) => {
    const roles = Object.values(documentRoles);
    const [found] = await session.rows<{ complete: boolean }>(isComplete, [roles, roles.length]);
    if (found?.complete !== true) await session.rows(installSql);
    else await updateExtensions(session);
    await createOnce(session, instance.spec.databases);
  };
  await withSession(asPostgresql(instance), signal, install, {
    database: defaultDatabase,
    statementMs: 60_000,
    isLocal: true,
  });
}

/** Scripts of the extensions that it requires create objects without a schema. No user of the service has SQL. */
const installSql = ["BEGIN", "SET LOCAL search_path TO public", "CREATE EXTENSION IF NOT EXISTS documentdb CASCADE"]
  .concat(
    Object.values(documentRoles).flatMap((role) => [createRole(role), `GRANT ${documentsRole} TO ${identifier(role)}`]),
    `ALTER ROLE ${identifier(documentRoles.readers)} SET default_transaction_read_only = on`,
    createMarksSql,
    "COMMIT",
  )
  .join("; ");

/**
 * Extensions of an older image, those that others require first. A newer one than the image's remains: there is no path
 * back.
 */
const outdatedSql = `SELECT e.extname AS name FROM pg_extension e JOIN pg_available_extensions a ON a.name = e.extname
  WHERE a.default_version <> e.extversion AND EXISTS (SELECT FROM pg_extension_update_paths(e.extname) p
    WHERE p.source = e.extversion AND p.target = a.default_version AND p.path IS NOT NULL)
  ORDER BY e.extname = 'documentdb', e.extname`;

async function updateExtensions(session: Session): Promise<void> {
  const outdated = await session.rows<{ name: string }>(outdatedSql);
  if (outdated.length === 0) return;
  const updates = outdated.map(({ name }) => `ALTER EXTENSION ${identifier(name)} UPDATE`);
  await session.rows(["BEGIN", "SET LOCAL search_path TO public", ...updates, "COMMIT"].join("; "));
}

function createRole(role: string): string {
  return `DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${literal(role)}) THEN
      CREATE ROLE ${identifier(role)} LOGIN;
    END IF;
  END $$`;
}
