import { randomUUID } from "node:crypto";
import { unlimited } from "@holdfast/common/postgresql/session-settings.ts";
import { platform, platformRolePattern, poolerRole } from "../layout.ts";
import { putPlatformRole } from "../platform-role.ts";
import { literal, type Session } from "../session.ts";

/** Function in the platform's database, which users cannot enter. */
export const secretFunction = `${platform}.pooler_secret`;

const isOfUsers = `rolname !~ ${literal(platformRolePattern)}`;

/**
 * Creates the pooler's role and its function, which returns the password verifier of a login role of users, also of one
 * with the attribute REPLICATION. For any other name it returns a verifier that matches no password and does not
 * change, so that a client cannot find out which users exist.
 */
export async function preparePooler(session: Session): Promise<void> {
  const nonce = randomUUID();
  const digest = (use: string) => `sha256(convert_to('${nonce} ${use} ' || asked, 'UTF8'))`;
  await putPlatformRole(session, {
    name: poolerRole,
    attributes: "LOGIN NOREPLICATION CONNECTION LIMIT 4",
    // PgBouncer connects without startup options.
    settings: unlimited,
    isValid: `rolcanlogin AND NOT rolreplication AND to_regprocedure('${secretFunction}(text)') IS NOT NULL
      AND has_function_privilege(r.oid, to_regprocedure('${secretFunction}(text)'), 'EXECUTE')
      AND (SELECT strpos(prosrc, ${literal(isOfUsers)}) > 0 AND strpos(prosrc, 'rolreplication') = 0 FROM pg_proc
           WHERE oid = to_regprocedure('${secretFunction}(text)'))`,
    grants: [
      `GRANT CONNECT ON DATABASE ${platform} TO ${poolerRole}`,
      `GRANT USAGE ON SCHEMA ${platform} TO ${poolerRole}`,
      `CREATE OR REPLACE FUNCTION ${secretFunction}(asked text) RETURNS TABLE (username text, secret text)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
         SELECT asked, coalesce(
           (SELECT rolpassword FROM pg_authid
            WHERE rolname = asked AND rolcanlogin AND NOT rolsuper AND ${isOfUsers}
              AND coalesce(rolvaliduntil, 'infinity') > now()),
           format('SCRAM-SHA-256$4096:%s$%s:%s', encode(substr(${digest("salt")}, 1, 16), 'base64'),
             encode(${digest("stored")}, 'base64'), encode(${digest("server")}, 'base64'))) $body$`,
      `REVOKE ALL ON FUNCTION ${secretFunction} FROM PUBLIC`,
      `GRANT EXECUTE ON FUNCTION ${secretFunction} TO ${poolerRole}`,
    ],
  });
}
