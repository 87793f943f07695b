import { authOwner, authSchema } from "@holdfast/common/auth-schema/names.ts";
import { authSchemaVersions } from "@holdfast/common/auth-schema/versions.ts";
import { EngineRefused } from "../../engine-errors.ts";
import type { PreparedSchema } from "../../identity-facet.ts";
import { groups } from "../layout.ts";
import { identifier, inTransaction, literal, type Session } from "../session.ts";

/** Maximum number of sessions of all issuers together. */
const connectionLimit = 32;
/** PostgreSQL's role whose members may use `reserved_connections`. */
const reserve = "pg_use_reserved_connections";
const mark = "Users of an app, kept by the platform. Version ";

/**
 * Creates the schema, or migrates it to the newest version, in one transaction of a superuser's session; then grants
 * the role access to its rows and nothing else. Returns the version. Throws EngineRefused if names are taken by users.
 */
export async function prepareSchema(session: Session, { database, role, verifier }: PreparedSchema): Promise<number> {
  return inTransaction(session, async () => {
    await session.rows("SELECT pg_advisory_xact_lock(hashtextextended('holdfast users of an app', 0))");
    await ensureOwner(session);
    const version = await versionOf(session);
    await refuseForeign(session);
    if (version === undefined) await session.rows(`CREATE SCHEMA ${authSchema} AUTHORIZATION ${authOwner}`);
    // Run as the schema's owner, so that no code that a statement may call has the superuser's privileges.
    await session.rows(`SET LOCAL ROLE ${authOwner}`);
    for (const statement of authSchemaVersions.slice(version ?? 0).flat()) await session.rows(statement);
    await session.rows(`COMMENT ON SCHEMA ${authSchema} IS ${literal(`${mark}${authSchemaVersions.length}`)}`);
    await session.rows("SET LOCAL ROLE NONE");
    await ensureRole(session, role, verifier);
    await grant(session, database, role);
    return authSchemaVersions.length;
  });
}

/** Undefined if there is no schema. Throws EngineRefused if it has another owner or a newer version. */
async function versionOf(session: Session): Promise<number | undefined> {
  const [found] = await session.rows<{ owner: string; comment: string | null }>(
    `SELECT pg_get_userbyid(nspowner) AS owner, obj_description(oid, 'pg_namespace') AS comment
     FROM pg_namespace WHERE nspname = $1`,
    [authSchema],
  );
  if (found === undefined) return undefined;
  const version = Number(found.comment?.startsWith(mark) === true ? found.comment.slice(mark.length) : Number.NaN);
  if (found.owner !== authOwner || !Number.isSafeInteger(version))
    throw new EngineRefused(`The schema ${authSchema} is not the platform's; drop or rename it.`);
  if (version > authSchemaVersions.length)
    throw new EngineRefused(`The schema ${authSchema} has the newer version ${version}.`);
  return version;
}

async function ensureOwner(session: Session): Promise<void> {
  const [found] = await session.rows<{ may: boolean; has_members: boolean }>(
    `SELECT rolcanlogin OR rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS may,
       EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid OR m.member = r.oid) AS has_members
     FROM pg_roles r WHERE rolname = $1`,
    [authOwner],
  );
  if (found === undefined) await session.rows(`CREATE ROLE ${authOwner} NOLOGIN NOINHERIT`);
  else if (found.may || found.has_members)
    throw new EngineRefused(`The role ${authOwner} is not the platform's; drop or rename it.`);
}

async function ensureRole(session: Session, role: string, verifier: string): Promise<void> {
  const [found] = await session.rows<{ may: boolean; has_members: boolean; is_unchanged: boolean }>(
    `SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS may,
       EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid OR m.member = r.oid AND m.roleid <> $3::regrole)
         AS has_members,
       rolpassword = $2 AND rolcanlogin AS is_unchanged
     FROM pg_authid r WHERE rolname = $1`,
    [role, verifier, reserve],
  );
  if (found?.may === true || found?.has_members === true)
    throw new EngineRefused(`The role ${role} is not the platform's; drop or rename it.`);
  if (found === undefined) await session.rows(`CREATE ROLE ${identifier(role)} NOINHERIT`);
  // An app that uses all connections must not lock its users out.
  await session.rows(`GRANT ${reserve} TO ${identifier(role)} WITH INHERIT TRUE, SET FALSE`);
  if (found?.is_unchanged === true) return;
  await session.rows(
    `ALTER ROLE ${identifier(role)} LOGIN CONNECTION LIMIT ${connectionLimit} PASSWORD ${literal(verifier)}`,
  );
}

/** The owner's own roles may read the tables of users and identities, and nothing else. */
async function grant(session: Session, database: string, role: string): Promise<void> {
  const name = identifier(role);
  const readers = Object.values(groups).join(", ");
  for (const statement of [
    `GRANT CONNECT ON DATABASE ${identifier(database)} TO ${name}`,
    `REVOKE ALL ON SCHEMA ${authSchema} FROM PUBLIC`,
    `GRANT USAGE ON SCHEMA ${authSchema} TO ${name}, ${readers}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${authSchema} TO ${name}`,
    `GRANT SELECT ON ${authSchema}.users, ${authSchema}.identities TO ${readers}`,
  ])
    await session.rows(statement);
}

/** Objects in the schema, or attached to its tables, that do not belong to its owner. */
const foreignObjects = `
  WITH platform_owner AS (SELECT oid AS role FROM pg_roles WHERE rolname = '${authOwner}'),
    ns AS (SELECT oid AS id FROM pg_namespace WHERE nspname = '${authSchema}'),
    tables AS (SELECT c.oid AS id FROM pg_class c JOIN ns ON c.relnamespace = ns.id)
  SELECT kind || ' ' || name AS what FROM (
    SELECT 'relation' AS kind, relname::text AS name, relowner AS owner FROM pg_class JOIN ns ON relnamespace = ns.id
    UNION ALL SELECT 'function', proname, NULL FROM pg_proc JOIN ns ON pronamespace = ns.id
    UNION ALL SELECT 'operator', oprname, NULL FROM pg_operator JOIN ns ON oprnamespace = ns.id
    UNION ALL SELECT 'type', typname, typowner FROM pg_type JOIN ns ON typnamespace = ns.id
    UNION ALL SELECT 'trigger', tgname, NULL FROM pg_trigger t JOIN tables ON t.tgrelid = tables.id WHERE NOT tgisinternal
    UNION ALL SELECT 'rule', rulename, NULL FROM pg_rewrite r JOIN tables ON r.ev_class = tables.id
    UNION ALL SELECT 'policy', polname, NULL FROM pg_policy p JOIN tables ON p.polrelid = tables.id
    UNION ALL SELECT 'child table', inhrelid::regclass::text, NULL FROM pg_inherits i JOIN tables ON i.inhparent = tables.id
  ) AS found, platform_owner WHERE owner IS DISTINCT FROM platform_owner.role LIMIT 1`;

/** Throws EngineRefused if the schema contains objects of others. The check reads catalogs only and calls no code. */
async function refuseForeign(session: Session): Promise<void> {
  const [found] = await session.rows<{ what: string }>(foreignObjects);
  if (found !== undefined)
    throw new EngineRefused(`The ${found.what} in schema ${authSchema} is not the platform's; drop or rename it.`);
}
