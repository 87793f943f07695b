import { create } from "@bufbuild/protobuf";
import {
  type EngineUser,
  type EngineUserState,
  EngineUserStateSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { EngineRefused, type Instance, type UsersFacet } from "../engine-driver.ts";
import { defaultUser, groups, isReserved } from "./layout.ts";
import { putUserSql } from "./put-user.ts";
import { refusalOf } from "./refusal.ts";
import { identifier, literal, type Session, withSession } from "./session.ts";

export const users: UsersFacet = {
  list: (instance, signal) => withSession(instance, signal, listUsers),
  put: (instance, user, signal) =>
    withSession(instance, signal, (session) => putUser(session, user, instance.spec.version)),
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
};

interface RoleRow {
  readonly rolname: string;
  readonly rolpassword: string | null;
  readonly groups: string[];
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

async function putUser(session: Session, user: EngineUser, version: string): Promise<{ changed: boolean }> {
  const [row] = await readRoles(session, "r.rolname = $1", [user.username]);
  const same = row !== undefined && row.attributes && row.rolpassword === user.verifier && roleOf(row) === user.role;
  if (same) return { changed: false };
  if (row !== undefined && user.username === defaultUser && user.role !== "admin") {
    throw new EngineRefused(`${defaultUser} is always an admin`);
  }
  try {
    await session.rows(`BEGIN; ${putUserSql(user, row !== undefined, version)}; COMMIT`);
  } catch (error) {
    throw refusalOf(error);
  }
  return { changed: true };
}

function readRoles(session: Session, condition: string, values: readonly unknown[]): Promise<RoleRow[]> {
  return session.rows<RoleRow>(
    `SELECT r.rolname, r.rolpassword,
       r.rolcanlogin AND NOT r.rolsuper AND NOT r.rolreplication AND NOT r.rolbypassrls AS attributes,
       ARRAY (SELECT g.rolname::text FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid
              WHERE m.member = r.oid ORDER BY 1) AS groups
     FROM pg_authid r WHERE ${condition} ORDER BY r.rolname`,
    values,
  );
}

/** What it owned goes to the default user, what it was granted is gone, and its sessions end. */
async function dropUser(instance: Instance, username: string, signal: AbortSignal): Promise<{ existed: boolean }> {
  if (username === defaultUser) throw new EngineRefused(`${defaultUser} owns the databases and cannot be dropped`);
  if (isReserved(username)) return { existed: false };
  const name = identifier(username);
  const databases = await withSession(instance, signal, async (session) => {
    const [role] = await session.rows("SELECT 1 FROM pg_roles WHERE rolname = $1 AND NOT rolsuper", [username]);
    if (role === undefined) return undefined;
    // Nobody comes back in while it is taken apart. It stays one of the users until it is gone: a removal that is broken off
    // shows, and can be asked for again.
    await session.rows(
      `ALTER ROLE ${name} CONNECTION LIMIT 0; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ${literal(username)}`,
    );
    const rows = await session.rows<{ datname: string }>(
      `SELECT datname FROM pg_database WHERE datallowconn AND oid IN
         (SELECT dbid FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND refobjid = $1::text::regrole)`,
      [name],
    );
    return rows.map(({ datname }) => datname);
  });
  if (databases === undefined) return { existed: false };
  try {
    for (const database of databases)
      await withSession(instance, signal, (session) => disown(session, name), { database });
    await withSession(instance, signal, async (session) => {
      await disown(session, name);
      await session.rows(`DROP ROLE ${name}`);
    });
  } catch (error) {
    throw refusalOf(error);
  }
  return { existed: true };
}

async function disown(session: Session, name: string): Promise<void> {
  await session.rows(`BEGIN; REASSIGN OWNED BY ${name} TO ${defaultUser}; DROP OWNED BY ${name}; COMMIT`);
}
