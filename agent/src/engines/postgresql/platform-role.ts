import type { SessionSettings } from "@holdfast/common/postgresql/session-settings.ts";
import { platform } from "./layout.ts";
import type { Session } from "./session.ts";

/** A role that only the platform's own programs sign in as. */
export interface PlatformRole {
  readonly name: string;
  /** Attributes besides NOSUPERUSER, NOCREATEROLE and the like. */
  readonly attributes: string;
  /** SQL condition over pg_roles as `r`, beyond the common ones, under which the role needs no change. */
  readonly isValid: string;
  /** Idempotent statements. */
  readonly grants: readonly string[];
  /** Settings of its sessions, which win over postgresql.conf. */
  readonly settings?: SessionSettings;
}

/**
 * Creates or repairs the role. Its creator could use a role that a user created under this name, so all memberships are
 * revoked. Reads the role first, so that a primary with a valid role writes nothing.
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
    `${found === undefined ? `CREATE ROLE ${name};` : ""}
     ALTER ROLE ${name} NOSUPERUSER NOCREATEROLE NOCREATEDB NOBYPASSRLS PASSWORD NULL ${attributes};
     ALTER ROLE ${name} RESET ALL;
     ${Object.entries(settings)
       .map(([setting, value]) => `ALTER ROLE ${name} SET ${setting} TO '${value}';`)
       .join("\n")}
     DO $do$ DECLARE m record; BEGIN
       FOR m IN SELECT roleid::regrole AS role, member::regrole AS member FROM pg_auth_members
         WHERE '${name}'::regrole IN (roleid, member)
       LOOP EXECUTE format('REVOKE %s FROM %s CASCADE', m.role, m.member); END LOOP;
     END $do$;
     ${grants.map((grant) => `${grant};`).join("\n")}`,
  );
}
