import type { SessionSettings } from "@holdfast/common/postgresql/session-settings.ts";
import { platform } from "./layout.ts";
import type { Session } from "./session.ts";

/** A role that only the platform's own programs sign in as. */
export interface PlatformRole {
  readonly name: string;
  /** Role attributes in addition to the ones that all platform roles have, such as NOSUPERUSER. */
  readonly attributes: string;
  /** SQL condition over pg_roles as `r`, beyond the common ones, under which the role needs no change. */
  readonly isValid: string;
  /** Idempotent statements. */
  readonly grants: readonly string[];
  /** Settings of its sessions, which win over postgresql.conf. */
  readonly settings?: SessionSettings;
}

/**
 * Creates the role if it is missing. A role of the name with other attributes is replaced, since a user may have
 * created it and its open sessions would get the new privileges: it is renamed, so that references to it remain valid,
 * and can no longer sign in. Reads the role first, so that a primary with a valid role writes nothing.
 */
export async function putPlatformRole(
  session: Session,
  { name, attributes, isValid, grants, settings = {} }: PlatformRole,
): Promise<void> {
  const [found] = await session.rows<{ valid: boolean }>(
    `SELECT NOT rolsuper AND NOT rolcreaterole AND NOT rolcreatedb AND ${isValid}
       AND NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid OR m.member = r.oid)
       AND has_database_privilege(r.oid, $2, 'CONNECT')
       AND coalesce(rolconfig, '{}') @> $3::text[] AND coalesce(rolconfig, '{}') <@ $3::text[] AS valid
     FROM pg_roles r WHERE rolname = $1`,
    [name, platform, Object.entries(settings).map(([setting, value]) => `${setting}=${value}`)],
  );
  if (found?.valid === true) return;
  await session.rows(
    `${found === undefined ? "" : setAside(name)}
     CREATE ROLE ${name} NOSUPERUSER NOCREATEROLE NOCREATEDB NOBYPASSRLS PASSWORD NULL ${attributes};
     ${Object.entries(settings)
       .map(([setting, value]) => `ALTER ROLE ${name} SET ${setting} TO '${value}';`)
       .join("\n")}
     ${grants.map((grant) => `${grant};`).join("\n")}`,
  );
}

/** Renames the role and takes what it has in this database, where the platform's own privileges are. */
const setAside = (name: string) => `DO $do$ DECLARE
       former text := format('former_%s', '${name}'::regrole::oid); m record;
     BEGIN
       EXECUTE format('ALTER ROLE ${name} RENAME TO %I', former);
       EXECUTE format('ALTER ROLE %I NOSUPERUSER NOCREATEROLE NOCREATEDB NOREPLICATION NOBYPASSRLS NOLOGIN', former);
       EXECUTE format('DROP OWNED BY %I', former);
       FOR m IN SELECT roleid::regrole AS role, member::regrole AS member FROM pg_auth_members
         WHERE former::regrole IN (roleid, member)
       LOOP EXECUTE format('REVOKE %s FROM %s CASCADE', m.role, m.member); END LOOP;
       PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE usesysid = former::regrole;
       BEGIN
         EXECUTE format('DROP ROLE %I', former);
       EXCEPTION WHEN dependent_objects_still_exist THEN NULL;
       END;
     END $do$;`;
