import { randomUUID } from "node:crypto";
import { unlimited } from "@holdfast/common/postgresql/session-settings.ts";
import { platform, poolerRole } from "../layout.ts";
import { ownRole } from "../own-role.ts";
import type { Session } from "../session.ts";

/** In the platform's database, which nobody else enters. */
export const secretFunction = `${platform}.pooler_secret`;

/**
 * The role, and what it signs users in by: the verifier of one who may sign in, and of nobody with the rights of the platform.
 * Anybody else has one that no password fits, always the same: who asks does not learn which users there are.
 */
export async function preparePooler(session: Session): Promise<void> {
  const nonce = randomUUID();
  const digest = (use: string) => `sha256(convert_to('${nonce} ${use} ' || asked, 'UTF8'))`;
  await ownRole(session, {
    name: poolerRole,
    attributes: "LOGIN NOREPLICATION CONNECTION LIMIT 4",
    // The pooler connects by itself, without options.
    settings: unlimited,
    isGood: `rolcanlogin AND NOT rolreplication AND to_regprocedure('${secretFunction}(text)') IS NOT NULL
      AND has_function_privilege(r.oid, to_regprocedure('${secretFunction}(text)'), 'EXECUTE')`,
    grants: [
      `GRANT CONNECT ON DATABASE ${platform} TO ${poolerRole}`,
      `GRANT USAGE ON SCHEMA ${platform} TO ${poolerRole}`,
      `CREATE OR REPLACE FUNCTION ${secretFunction}(asked text) RETURNS TABLE (username text, secret text)
         LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
         SELECT asked, coalesce(
           (SELECT rolpassword FROM pg_authid
            WHERE rolname = asked AND rolcanlogin AND NOT rolsuper AND NOT rolreplication
              AND NOT starts_with(rolname, '${platform}') AND coalesce(rolvaliduntil, 'infinity') > now()),
           format('SCRAM-SHA-256$4096:%s$%s:%s', encode(substr(${digest("salt")}, 1, 16), 'base64'),
             encode(${digest("stored")}, 'base64'), encode(${digest("server")}, 'base64'))) $body$`,
      `REVOKE ALL ON FUNCTION ${secretFunction} FROM PUBLIC`,
      `GRANT EXECUTE ON FUNCTION ${secretFunction} TO ${poolerRole}`,
    ],
  });
}
