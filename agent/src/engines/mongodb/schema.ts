import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import type { Instance } from "../engine-driver.ts";
import { roleOf } from "../members.ts";
import { documentRoles } from "../postgresql/layout.ts";
import { identifier, literal, type Session, withSession } from "../postgresql/session.ts";
import { asPostgresql } from "./as-postgresql.ts";

/** Role of DocumentDB that may call its functions and use all documents. */
const documentsRole = "documentdb_admin_role";

const isComplete = `SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'documentdb')
  AND (SELECT count(*) = $2 FROM pg_auth_members m JOIN pg_roles u ON u.oid = m.member JOIN pg_roles g ON g.oid = m.roleid
    WHERE u.rolname = ANY ($1::text[]) AND g.rolname = '${documentsRole}') AS complete`;

/**
 * Creates the extension DocumentDB, and the roles of the two processes of FerretDB. Both roles are plain ones, which
 * may neither create roles nor become another; sessions of readers start no transaction that writes.
 */
export async function ensureSchema(instance: Instance, signal: AbortSignal): Promise<void> {
  // A replica gets all of this from its primary.
  if (roleOf(instance.spec) !== "primary") return;
  await withSession(asPostgresql(instance), signal, install, {
    database: defaultDatabase,
    statementMs: 60_000,
    isLocal: true,
  });
}

async function install(session: Session): Promise<void> {
  const roles = Object.values(documentRoles);
  const [found] = await session.rows<{ complete: boolean }>(isComplete, [roles, roles.length]);
  if (found?.complete === true) return;
  // Scripts of extensions that it requires create objects without a schema. No user of it has SQL.
  await session.rows(
    "BEGIN; SET LOCAL search_path TO public; CREATE EXTENSION IF NOT EXISTS documentdb CASCADE; COMMIT",
  );
  for (const role of roles) await session.rows(createRole(role));
  await session.rows(`ALTER ROLE ${identifier(documentRoles.readers)} SET default_transaction_read_only = on`);
}

/** The membership comes last: it marks the role as complete. */
function createRole(role: string): string {
  const name = identifier(role);
  return `DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${literal(role)}) THEN CREATE ROLE ${name} LOGIN; END IF;
  END $$; GRANT ${documentsRole} TO ${name}`;
}
