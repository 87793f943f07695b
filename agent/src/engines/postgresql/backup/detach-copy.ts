import type { Instance } from "../../engine-driver.ts";
import { inEachDatabase, listDatabases } from "../database-list.ts";
import { platform } from "../layout.ts";
import { putUserSql } from "../put-user.ts";
import { identifier, type Session } from "../session.ts";
import type { PrivateServer } from "./private-server.ts";

/** Resets the passwords of the users in the settings, which may be newer than the data, and changes nothing else. */
export async function resetPasswords(server: PrivateServer, { spec }: Instance): Promise<string[]> {
  const roles = await server.rows<{ name: string }>("SELECT rolname AS name FROM pg_authid");
  const existing = new Set(roles.map(({ name }) => name));
  const statements = spec.users.map((user) => putUserSql(user, existing.has(user.username), spec.version));
  if (statements.length > 0) await server.rows(["BEGIN", ...statements, "COMMIT"].join("; "));
  return [];
}

/**
 * Detaches the copy from its source. Users in the settings get their passwords; every other login role loses its
 * password. Subscriptions are disabled and release their slots; user mappings of foreign servers lose their passwords,
 * in databases that allow no connections too. Invalid databases do not change, since no session can be opened there.
 * Slots are never part of a base backup. Returns the login roles that lost their passwords.
 */
export async function detachCopy(server: PrivateServer, { spec }: Instance): Promise<string[]> {
  const configured = spec.users.map(({ username }) => username);
  const roles = await server.rows<{ name: string; login: boolean; password: boolean }>(
    `SELECT rolname AS name, rolcanlogin AS login, rolpassword IS NOT NULL AS password FROM pg_authid
     WHERE rolname <> '${platform}' AND rolname !~ '^pg_' ORDER BY rolname`,
  );
  const existing = new Set(roles.map(({ name }) => name));
  const unlisted = roles.filter(({ name, password }) => password && !configured.includes(name));
  const statements = [
    ...unlisted.map(({ name }) => `ALTER ROLE ${identifier(name)} PASSWORD NULL`),
    ...spec.users.map((user) => putUserSql(user, existing.has(user.username), spec.version)),
  ];
  if (statements.length > 0) await server.rows(["BEGIN", ...statements, "COMMIT"].join("; "));
  const list = () => listDatabases(server);
  await inEachDatabase(list, (database) => server.inDatabase(database, detachDatabase));
  // Connections may be allowed there again later, which would resume subscriptions and foreign servers.
  for (const database of (await list()).closed) {
    const allow = (isAllowed: boolean) =>
      server.rows(`ALTER DATABASE ${identifier(database)} ALLOW_CONNECTIONS ${isAllowed}`);
    await allow(true);
    await server.inDatabase(database, detachDatabase);
    await allow(false);
  }
  return unlisted.filter(({ login }) => login).map(({ name }) => name);
}

async function detachDatabase(session: Session): Promise<void> {
  const subscriptions = await session.rows<{ name: string }>(
    "SELECT subname AS name FROM pg_subscription WHERE subdbid = (SELECT oid FROM pg_database WHERE datname = current_database())",
  );
  for (const each of subscriptions) {
    const subscription = identifier(each.name);
    await session.rows(`ALTER SUBSCRIPTION ${subscription} DISABLE`);
    await session.rows(`ALTER SUBSCRIPTION ${subscription} SET (slot_name = NONE)`);
  }
  const mappings = await session.rows<{ server: string; username: string | null; option: string }>(
    `SELECT m.srvname AS server, nullif(m.usename, 'public') AS username, split_part(o.option, '=', 1) AS option
     FROM pg_user_mappings m, unnest(m.umoptions) AS o(option) WHERE split_part(o.option, '=', 1) ~ 'passw|passcode|secret'`,
  );
  for (const { server: foreign, username, option } of mappings) {
    const owner = username === null ? "PUBLIC" : identifier(username);
    await session.rows(
      `ALTER USER MAPPING FOR ${owner} SERVER ${identifier(foreign)} OPTIONS (DROP ${identifier(option)})`,
    );
  }
}
