import { authOwner, authSchema } from "@holdfast/common/auth-schema/names.ts";
import { authSchemaVersions } from "@holdfast/common/auth-schema/versions.ts";
import { EngineRefused } from "../../engine-errors.ts";
import type { PreparedSchema } from "../../identity-facet.ts";
import { groups } from "../layout.ts";
import { inTransaction } from "../queue/transaction.ts";
import { identifier, literal, type Session } from "../session.ts";
import { refuseForeign } from "./refuse-foreign.ts";

/** Sessions of all issuers together. */
const connectionLimit = 32;
/** Of PostgreSQL: whoever is in it may take `reserved_connections`. */
const reserve = "pg_use_reserved_connections";
const mark = "Users of an app, kept by the platform. Version ";

/**
 * Makes the schema in the database of a session of the platform's superuser, or brings it to the newest version, in one
 * transaction; then lets the role at its rows and at nothing else.
 */
export async function prepareSchema(session: Session, { database, role, verifier }: PreparedSchema): Promise<number> {
  return inTransaction(session, async () => {
    await session.rows("SELECT pg_advisory_xact_lock(hashtextextended('holdfast users of an app', 0))");
    await putOwner(session);
    const version = await versionOf(session);
    await refuseForeign(session);
    if (version === undefined) await session.rows(`CREATE SCHEMA ${authSchema} AUTHORIZATION ${authOwner}`);
    // As its owner: nothing that a statement of ours may call runs with the superuser's rights.
    await session.rows(`SET LOCAL ROLE ${authOwner}`);
    for (const statement of authSchemaVersions.slice(version ?? 0).flat()) await session.rows(statement);
    await session.rows(`COMMENT ON SCHEMA ${authSchema} IS ${literal(`${mark}${authSchemaVersions.length}`)}`);
    await session.rows("SET LOCAL ROLE NONE");
    await putRole(session, role, verifier);
    await grant(session, database, role);
    return authSchemaVersions.length;
  });
}

/** Undefined where there is no schema; throws where it has another owner, or is of a newer version. */
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
    throw new EngineRefused(`The schema ${authSchema} is of the newer version ${version}.`);
  return version;
}

async function putOwner(session: Session): Promise<void> {
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

async function putRole(session: Session, role: string, verifier: string): Promise<void> {
  const [found] = await session.rows<{ may: boolean; has_members: boolean; is_ours: boolean }>(
    `SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS may,
       EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid OR m.member = r.oid AND m.roleid <> $3::regrole)
         AS has_members,
       rolpassword = $2 AND rolcanlogin AS is_ours
     FROM pg_authid r WHERE rolname = $1`,
    [role, verifier, reserve],
  );
  if (found?.may === true || found?.has_members === true)
    throw new EngineRefused(`The role ${role} is not the platform's; drop or rename it.`);
  if (found === undefined) await session.rows(`CREATE ROLE ${identifier(role)} NOINHERIT`);
  // An app that took all connections does not keep its users out.
  await session.rows(`GRANT ${reserve} TO ${identifier(role)} WITH INHERIT TRUE, SET FALSE`);
  if (found?.is_ours === true) return;
  await session.rows(
    `ALTER ROLE ${identifier(role)} LOGIN CONNECTION LIMIT ${connectionLimit} PASSWORD ${literal(verifier)}`,
  );
}

/** The owner's own roles may look who their users are, and no further. */
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
