import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import {
  type EngineUser,
  type EngineUserState,
  EngineUserStateSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "../engine-driver.ts";
import type { ChangeOptions, PutUserOptions, UsersFacet } from "../contents-facets.ts";
import { EngineRefused } from "../engine-errors.ts";
import { boundsOf, withTurn } from "./change.ts";
import { type DatabaseList, inEachDatabase, inShort, listDatabases } from "./database-list.ts";
import { groups, isReserved } from "./layout.ts";
import { putUserSql } from "./put-user.ts";
import { identifier, literal, type Session, withSession } from "./session.ts";

export const users: UsersFacet = {
  list: (instance, signal) => withSession(instance, signal, listUsers),
  put: (instance, user, signal, options) =>
    withTurn(instance, `user ${user.username}`, signal, options, (session) =>
      putUser(session, user, instance.spec.version, options?.expected),
    ),
  drop: dropUser,
  check: (instance, username, verifier, signal) =>
    withSession(instance, signal, async (session) => {
      const [role] = isReserved(username)
        ? []
        : await session.rows<{ rolpassword: string | null }>(
            "SELECT rolpassword FROM pg_authid WHERE rolname = $1 AND rolcanlogin",
            [username],
          );
      return { exists: role !== undefined, matches: role?.rolpassword === verifier };
    }),
  settled: (instance, username, verifier, signal, options) =>
    withTurn(instance, `user ${username}`, signal, options, async (session) => {
      const [row] = isReserved(username) ? [] : await readRoles(session, "r.rolname = $1", [username]);
      if (row === undefined) return { exists: false, matches: false, role: "" };
      return { exists: true, matches: row.rolpassword === verifier, role: roleOf(row) };
    }),
};

interface RoleRow {
  readonly rolname: string;
  readonly rolpassword: string | null;
  readonly groups: string[];
  readonly canlogin: boolean;
  readonly attributes: boolean;
}

/** The role is what the memberships say, as they are now; `custom` for what was made or changed in SQL. */
async function listUsers(session: Session): Promise<EngineUserState[]> {
  const rows = await readRoles(session, "r.rolcanlogin", []);
  return rows
    .filter(({ rolname }) => !isReserved(rolname))
    .map((row) => create(EngineUserStateSchema, { username: row.rolname, role: roleOf(row) }));
}

function roleOf({ groups: member }: RoleRow): "admin" | "readwrite" | "readonly" | "custom" {
  if (member.includes(groups.admin)) return "admin";
  if (member.includes(groups.readwrite)) return "readwrite";
  return member.includes(groups.readonly) ? "readonly" : "custom";
}

async function putUser(
  session: Session,
  asked: EngineUser,
  version: string,
  expected: PutUserOptions["expected"],
): Promise<{ changed: boolean; role: string }> {
  const [row] = await readRoles(session, "r.rolname = $1", [asked.username]);
  const user = expected === "present" ? { ...asked, role: keptRole(row, asked.username) } : asked;
  const { role } = user;
  const isOurs = row?.rolpassword === user.verifier;
  if (isOurs && row.attributes && roleOf(row) === role) return { changed: false, role };
  if (row !== undefined && !isOurs && expected === "absent")
    throw new EngineRefused(`The engine has a user ${user.username} already.`, { code: "name_taken" });
  if (row !== undefined && user.username === defaultUser && role !== "admin") {
    throw new EngineRefused(`${defaultUser} is always an admin`);
  }
  await session.rows(`BEGIN; ${putUserSql(user, row !== undefined, version)}; COMMIT`);
  return { changed: true, role };
}

/** The role of a user that is to keep it. */
function keptRole(row: RoleRow | undefined, username: string): string {
  if (row === undefined || !row.canlogin || isReserved(username))
    throw new EngineRefused(`The engine has no user ${username}.`, { code: "database_user_not_found" });
  const role = roleOf(row);
  if (role !== "custom") return role;
  const message = `${username} has rights of its own; change its password in the engine.`;
  throw new EngineRefused(message, { code: "not_possible" });
}

function readRoles(session: Session, condition: string, values: readonly unknown[]): Promise<RoleRow[]> {
  return session.rows<RoleRow>(
    `SELECT r.rolname, r.rolpassword, r.rolcanlogin AS canlogin,
       r.rolcanlogin AND NOT r.rolsuper AND NOT r.rolreplication AND NOT r.rolbypassrls AS attributes,
       ARRAY (SELECT g.rolname::text FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
              WHERE m.member = r.oid ORDER BY 1) AS groups
     FROM pg_authid r WHERE ${condition} ORDER BY r.rolname`,
    values,
  );
}

/** What it owned goes to the default user, what it was granted is gone, and its sessions end. */
function dropUser(
  instance: Instance,
  username: string,
  signal: AbortSignal,
  options?: ChangeOptions,
): Promise<{ existed: boolean }> {
  const name = identifier(username);
  return withTurn(instance, `user ${username}`, signal, options, async (session) => {
    if (username === defaultUser) throw new EngineRefused(`${defaultUser} owns the databases and cannot be dropped`);
    const [role] = isReserved(username)
      ? []
      : await session.rows<{ limit: number }>(
          'SELECT rolconnlimit AS "limit" FROM pg_roles WHERE rolname = $1 AND NOT rolsuper',
          [username],
        );
    if (role === undefined) return { existed: false };
    const { closed, invalid } = await databasesWith(session, name);
    if (closed.length > 0) {
      const message = `${username} owns objects in databases that allow no connections: ${inShort(closed)}. Allow them, or drop the databases.`;
      throw new EngineRefused(message, { code: "not_possible" });
    }
    if (invalid.length > 0) {
      const message = `${username} owns objects in databases that are invalid: ${inShort(invalid)}. Drop the databases first.`;
      throw new EngineRefused(message, { code: "not_possible" });
    }
    // Nobody comes back in while it is taken apart. It stays one of the users until it is gone.
    await session.rows(
      `ALTER ROLE ${name} CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${literal(username)}`,
    );
    try {
      await inEachDatabase(
        () => databasesWith(session, name),
        (database) => withSession(instance, signal, (there) => disown(there, name), { ...boundsOf(options), database }),
      );
      await disown(session, name);
      await session.rows(`DROP ROLE ${name}`);
    } catch (error) {
      // A user that stays can sign in as before, unless the engine is away too.
      await session.rows(`ROLLBACK; ALTER ROLE ${name} CONNECTION LIMIT ${role.limit}`).catch(() => undefined);
      throw error;
    }
    return { existed: true };
  });
}

/** The databases in which a role, by its quoted name, has objects or rights. */
async function databasesWith(session: Session, role: string): Promise<DatabaseList> {
  const rows = await session.rows<{ name: string }>(
    `SELECT datname AS name FROM pg_database WHERE oid IN
       (SELECT dbid FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = $1::text::regrole)`,
    [role],
  );
  const having = new Set(rows.map(({ name }) => name));
  const { ready, templates, closed, invalid } = await listDatabases(session);
  const those = (names: readonly string[]) => names.filter((name) => having.has(name));
  return { ready: those(ready), templates: those(templates), closed: those(closed), invalid: those(invalid) };
}

async function disown(session: Session, name: string): Promise<void> {
  await session.rows(`BEGIN; REASSIGN OWNED BY ${name} TO ${defaultUser}; DROP OWNED BY ${name}; COMMIT`);
}
