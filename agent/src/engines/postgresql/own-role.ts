import type { SessionSettings } from "@holdfast/common/postgresql/session-settings.ts";
import { platform } from "./layout.ts";
import type { Session } from "./session.ts";

/** A role that only the platform's own programs sign in as. */
export interface OwnRole {
  readonly name: string;
  /** Beside having no password and no right over others. */
  readonly attributes: string;
  /** SQL over pg_roles as r: what else is so when nothing is to be done. */
  readonly isGood: string;
  /** Statements, each good to run again. */
  readonly grants: readonly string[];
  /** Of its sessions, which win over postgresql.conf. */
  readonly settings?: SessionSettings;
}

/**
 * Makes the role, or makes it what it is to be. One that a user made under this name first would be its maker's to use: nobody
 * is left a member of it. It is looked at first, so that a primary that has it writes nothing.
 */
export async function ownRole(
  session: Session,
  { name, attributes, isGood, grants, settings = {} }: OwnRole,
): Promise<void> {
  const [found] = await session.rows<{ good: boolean }>(
    `SELECT NOT rolsuper AND NOT rolcreaterole AND NOT rolcreatedb AND ${isGood}
       AND NOT EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid OR m.member = r.oid)
       AND has_database_privilege(r.oid, $2, 'CONNECT')
       AND coalesce(rolconfig, '{}') @> $3::text[] AND coalesce(rolconfig, '{}') <@ $3::text[] AS good
     FROM pg_roles r WHERE rolname = $1`,
    [name, platform, Object.entries(settings).map(([setting, value]) => `${setting}=${value}`)],
  );
  if (found?.good === true) return;
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
