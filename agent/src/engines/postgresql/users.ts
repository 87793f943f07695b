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
import { summarizeNames } from "../summarize-names.ts";
import { identifier, literal, type Session, timeoutsOf, withAdvisoryLock, withSession } from "./session.ts";
import { type DatabaseList, inEachDatabase, listDatabases } from "./database-list.ts";
import { groups, isReserved } from "./layout.ts";
import { changeUserSql, putUserSql } from "./put-user.ts";

export const users: UsersFacet = {
  list: (instance, signal) => withSession(instance, signal, listUsers),
  put: (instance, user, signal, options) =>
    withAdvisoryLock(instance, `user ${user.username}`, signal, options, (session) =>
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
  settled: (instance, user, signal, options) =>
    withAdvisoryLock(instance, `user ${user.username}`, signal, options, async (session) => {
      const [row] = isReserved(user.username) ? [] : await readRoles(session, "r.rolname = $1", [user.username]);
      if (row === undefined) return { exists: false, matches: false, role: "" };
      return { exists: true, matches: hasRequested(row, user), role: roleOf(row) };
    }),
};

interface RoleRow {
  readonly rolname: string;
  readonly rolpassword: string | null;
  readonly groups: string[];
  readonly canlogin: boolean;
  readonly replication: boolean;
  readonly attributes: boolean;
}

/** The role follows from the current memberships; `custom` for a user that was created or changed in SQL. */
async function listUsers(session: Session): Promise<EngineUserState[]> {
  const rows = await readRoles(session, "r.rolcanlogin", []);
  return rows
    .filter(({ rolname }) => !isReserved(rolname))
    .map((row) => {
      const { rolname: username, replication } = row;
      return create(EngineUserStateSchema, { username, role: roleOf(row), replication });
    });
}

function roleOf({ groups: member }: RoleRow): "admin" | "readwrite" | "readonly" | "custom" {
  if (member.includes(groups.admin)) return "admin";
  if (member.includes(groups.readwrite)) return "readwrite";
  return member.includes(groups.readonly) ? "readonly" : "custom";
}

async function putUser(
  session: Session,
  requested: EngineUser,
  version: string,
  expected: PutUserOptions["expected"],
): Promise<{ changed: boolean; role: string; replication?: boolean }> {
  const [row] = await readRoles(session, "r.rolname = $1", [requested.username]);
  const user = expected === "present" ? { ...requested, role: currentRole(row, requested.username) } : requested;
  const { role, replication } = user;
  const now = { role, ...(replication !== undefined && { replication }) };
  const isAsRequested = row !== undefined && hasRequested(row, user);
  const keepsRole = expected === "present" && (role === "custom" || user.verifier === "");
  if (isAsRequested && (keepsRole || row.attributes) && roleOf(row) === role) return { changed: false, ...now };
  if (row !== undefined && row.rolpassword !== user.verifier && expected === "absent")
    throw new EngineRefused(`The engine has a user ${user.username} already.`, { code: "name_taken" });
  if (row !== undefined && user.username === defaultUser && role !== "admin") {
    throw new EngineRefused(`The role of ${defaultUser} is always admin.`);
  }
  const sql = keepsRole ? changeUserSql(user) : putUserSql(user, row !== undefined, version);
  await session.rows(`BEGIN; ${sql}; COMMIT`);
  return { changed: true, ...now };
}

/** True if the user has the attribute, unless it is unset, and the verifier, unless only the attribute is requested. */
function hasRequested(row: RoleRow, { verifier, replication }: Pick<EngineUser, "verifier" | "replication">): boolean {
  return (
    (row.rolpassword === verifier || (verifier === "" && replication !== undefined)) &&
    (replication === undefined || row.replication === replication)
  );
}

/** Current role of a user whose role does not change. Throws EngineRefused if there is no such user. */
function currentRole(row: RoleRow | undefined, username: string): string {
  if (row === undefined || !row.canlogin || isReserved(username))
    throw new EngineRefused(`The engine has no user ${username}.`, { code: "database_user_not_found" });
  return roleOf(row);
}

function readRoles(session: Session, condition: string, values: readonly unknown[]): Promise<RoleRow[]> {
  return session.rows<RoleRow>(
    `SELECT r.rolname, r.rolpassword, r.rolcanlogin AS canlogin,
       r.rolreplication AS replication,
       r.rolcanlogin AND NOT r.rolsuper AND NOT r.rolbypassrls AS attributes,
       ARRAY (SELECT g.rolname::text FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
              WHERE m.member = r.oid ORDER BY 1) AS groups
     FROM pg_authid r WHERE ${condition} ORDER BY r.rolname`,
    values,
  );
}

/** Ends the user's sessions, reassigns its objects to the default user, revokes its grants and drops it. */
function dropUser(
  instance: Instance,
  username: string,
  signal: AbortSignal,
  options?: ChangeOptions,
): Promise<{ existed: boolean }> {
  const name = identifier(username);
  return withAdvisoryLock(instance, `user ${username}`, signal, options, async (session) => {
    if (username === defaultUser)
      throw new EngineRefused(`The user ${defaultUser} owns the databases and cannot be dropped.`);
    const [role] = isReserved(username)
      ? []
      : await session.rows<{ limit: number }>(
          'SELECT rolconnlimit AS "limit" FROM pg_roles WHERE rolname = $1 AND NOT rolsuper',
          [username],
        );
    if (role === undefined) return { existed: false };
    const { closed, invalid } = await databasesWith(session, name);
    if (closed.length > 0) {
      const message = `${username} owns objects in databases that allow no connections: ${summarizeNames(closed)}. Allow them, or drop the databases.`;
      throw new EngineRefused(message, { code: "not_possible" });
    }
    if (invalid.length > 0) {
      const message = `${username} owns objects in databases that are invalid: ${summarizeNames(invalid)}. Drop the databases first.`;
      throw new EngineRefused(message, { code: "not_possible" });
    }
    // The limit prevents new sessions until the role is dropped. The list of users has the role until then.
    await session.rows(
      `ALTER ROLE ${name} CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${literal(username)}`,
    );
    try {
      await inEachDatabase(
        () => databasesWith(session, name),
        (database) =>
          withSession(instance, signal, (there) => reassignOwned(there, name), { ...timeoutsOf(options), database }),
      );
      await reassignOwned(session, name);
      await session.rows(`DROP ROLE ${name}`);
    } catch (error) {
      // If the drop fails, restore the connection limit, unless the engine is down too.
      await session.rows(`ROLLBACK; ALTER ROLE ${name} CONNECTION LIMIT ${role.limit}`).catch(() => undefined);
      throw error;
    }
    return { existed: true };
  });
}

/** Databases in which a role, given as a quoted name, has objects or privileges. */
async function databasesWith(session: Session, role: string): Promise<DatabaseList> {
  const rows = await session.rows<{ name: string }>(
    `SELECT datname AS name FROM pg_database WHERE oid IN
       (SELECT dbid FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = $1::text::regrole)`,
    [role],
  );
  const owned = new Set(rows.map(({ name }) => name));
  const { ready, templates, closed, invalid, limited } = await listDatabases(session);
  const withRole = (names: readonly string[]) => names.filter((name) => owned.has(name));
  return {
    ready: withRole(ready),
    templates: withRole(templates),
    closed: withRole(closed),
    invalid: withRole(invalid),
    limited: withRole(limited),
  };
}

async function reassignOwned(session: Session, name: string): Promise<void> {
  await session.rows(`BEGIN; REASSIGN OWNED BY ${name} TO ${defaultUser}; DROP OWNED BY ${name}; COMMIT`);
}
