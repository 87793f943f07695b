import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { type EngineUser, EngineUserStateSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { PutUserOptions, UsersFacet } from "../contents-facets.ts";
import { EngineRefused } from "../engine-errors.ts";
import { accessOf, grantSql, roleOfGrants } from "./access.ts";
import { killAll } from "./end-sessions.ts";
import { hasReservedPrefix, isReservedUser } from "./layout.ts";
import { dropShadowingAccounts } from "./shadowing-accounts.ts";
import { account, literal, type Session, withNamedLock, withSession } from "./session.ts";

export const users: UsersFacet = {
  list: (instance, signal) =>
    withSession(instance, signal, async (session) => {
      const rows = await session.rows<{ name: string }>("SELECT user AS name FROM mysql.user WHERE host = '%'");
      const roles = await session.rows<{ name: string }>("SELECT DISTINCT FROM_USER AS name FROM mysql.role_edges");
      const isRole = new Set(roles.map(({ name }) => name));
      const names = rows.map(({ name }) => name).filter((name) => !isReservedUser(name) && !isRole.has(name));
      const states = [];
      for (const username of names.sort())
        states.push(create(EngineUserStateSchema, { username, role: await currentRoleOf(session, username) }));
      return states;
    }),

  put: (instance, user, signal, options) =>
    withNamedLock(instance, `user ${user.username}`, signal, options, (session) =>
      putUser(session, user, options?.expected),
    ),

  /** Ends the user's sessions and drops it. Refused while views or routines run with the user's privileges. */
  drop: (instance, username, signal, options) =>
    withNamedLock(instance, `user ${username}`, signal, options, async (session) => {
      if (username === defaultUser) throw new EngineRefused(`The user ${defaultUser} cannot be dropped.`);
      const before = await stateOf(session, username);
      if (before === undefined) return { existed: false };
      const defined = await definedBy(session, username);
      if (defined.length > 0) {
        const message = `${username} is the definer of ${defined.join(", ")}. Drop them, or create them again as another user.`;
        throw new EngineRefused(message, { code: "not_possible" });
      }
      await dropShadowingAccounts(session, username);
      // The lock prevents new sessions between the end of the open ones and the drop.
      await session.rows(`ALTER USER ${account(username)} ACCOUNT LOCK`);
      await endSessions(session, username);
      await session.rows(`DROP USER ${account(username)}`);
      return { existed: true };
    }),

  check: (instance, username, verifier, signal) =>
    withSession(instance, signal, async (session) => {
      const state = await stateOf(session, username);
      return { exists: state !== undefined, matches: state?.verifier === verifier };
    }),

  settled: (instance, { username, verifier }, signal, options) =>
    withNamedLock(instance, `user ${username}`, signal, options, async (session) => {
      const state = await stateOf(session, username);
      if (state === undefined) return { exists: false, matches: false, role: "" };
      return { exists: true, matches: state.verifier === verifier, role: await currentRoleOf(session, username) };
    }),
};

/** A verifier of caching_sha2_password with a printable salt. */
const verifierPattern = /^\$A\$005\$[./0-9A-Za-z]{20}[./0-9A-Za-z]{43}$/;

async function putUser(
  session: Session,
  requested: EngineUser,
  expected: PutUserOptions["expected"],
): Promise<{ changed: boolean; role: string }> {
  const { username } = requested;
  const before = await stateOf(session, username);
  if (before === undefined && (isReservedUser(username) || hasReservedPrefix(username)))
    throw new EngineRefused(`The name ${username} is reserved for the platform.`);
  // A shadowing account would have another password than this one.
  await dropShadowingAccounts(session, username);
  const roleBefore = before && (await currentRoleOf(session, username));
  const isReset = expected === "present";
  const role = isReset ? await presentRole(session, username, roleBefore) : requested.role;
  const hasVerifier = before?.verifier === requested.verifier;
  if (hasVerifier && before.isUsable && roleBefore === role) return { changed: false, role };
  if (before !== undefined && !hasVerifier && expected === "absent")
    throw new EngineRefused(`The engine has a user ${username} already.`, { code: "name_taken" });
  if (username === defaultUser && role !== "admin" && !isReset)
    throw new EngineRefused(`The role of ${defaultUser} is always admin.`);
  await setUser(session, { ...requested, role }, roleBefore);
  return { changed: true, role };
}

/**
 * Creates the user, or gives it another role or password. None of it is one transaction: until the last statement the
 * account is locked, unless it has its role already.
 */
export async function setUser(session: Session, user: EngineUser, roleBefore: string | undefined): Promise<void> {
  const { username, role, verifier } = user;
  if (isReservedUser(username)) throw new EngineRefused(`The name ${username} is reserved for the platform.`);
  if (!verifierPattern.test(verifier)) throw new Error("the verifier is not a caching_sha2_password verifier");
  const name = account(username);
  if (roleBefore !== role) {
    const access = accessOf(role);
    await session.rows(`CREATE USER IF NOT EXISTS ${name} ACCOUNT LOCK`);
    await session.rows(`ALTER USER ${name} ACCOUNT LOCK`);
    await session.rows(`REVOKE ALL PRIVILEGES, GRANT OPTION FROM ${name}`);
    for (const statement of grantSql(name, access)) await session.rows(statement);
  }
  const password = `IDENTIFIED WITH caching_sha2_password AS ${literal(verifier)}`;
  // An account that was created in SQL may require more than TLS, such as a certificate.
  const tls = (await stateOf(session, username))?.requiresTls === true ? "" : "REQUIRE SSL";
  // A password that was changed in SQL may have left the previous one valid (RETAIN CURRENT PASSWORD).
  await session.rows(`ALTER USER ${name} DISCARD OLD PASSWORD`);
  await session.rows(`ALTER USER ${name} ${password} ${tls} PASSWORD EXPIRE NEVER ACCOUNT UNLOCK`);
  // Open sessions have the privileges of their start.
  if (roleBefore !== undefined && roleBefore !== role) await endSessions(session, username);
}

/**
 * Role of a user whose password alone changes. Throws EngineRefused if there is no such user, as for a role of SQL,
 * which has no password or was granted to an account.
 */
async function presentRole(session: Session, username: string, role: string | undefined): Promise<string> {
  const [row] = await session.rows<{ isRole: string }>(
    `SELECT (authentication_string = '' AND account_locked = 'Y')
       OR EXISTS (SELECT 1 FROM mysql.role_edges WHERE from_user = user AND from_host = host) AS isRole
     FROM mysql.user WHERE user = ? AND host = '%'`,
    [username],
  );
  if (role !== undefined && Number(row?.isRole) === 0) return role;
  throw new EngineRefused(`The engine has no user ${username}.`, { code: "database_user_not_found" });
}

interface UserState {
  readonly verifier: string;
  /** The account can sign in, by one password, and only with TLS. */
  readonly isUsable: boolean;
  readonly requiresTls: boolean;
}

async function stateOf(session: Session, username: string): Promise<UserState | undefined> {
  if (isReservedUser(username)) return undefined;
  const [row] = await session.rows<{ verifier: string; locked: string; tls: string; former: string }>(
    `SELECT CONVERT(authentication_string USING utf8mb4) AS verifier, account_locked AS locked,
       CONVERT(ssl_type USING utf8mb4) AS tls,
       JSON_CONTAINS_PATH(COALESCE(user_attributes, '{}'), 'one', '$.additional_password') AS former
     FROM mysql.user WHERE user = ? AND host = '%'`,
    [username],
  );
  if (row === undefined) return undefined;
  const requiresTls = row.tls !== "";
  const isUsable = row.locked === "N" && requiresTls && Number(row.former) === 0;
  return { verifier: row.verifier, isUsable, requiresTls };
}

/** Current role of an account of users; `custom` for privileges that no role has. */
export async function currentRoleOf(session: Session, username: string): Promise<string> {
  const rows = await session.rows<Record<string, string>>(`SHOW GRANTS FOR ${account(username)}`);
  return roleOfGrants(rows.flatMap((row) => Object.values(row)));
}

async function endSessions(session: Session, username: string): Promise<void> {
  await killAll(session, "user = ?", username);
}

const namedMax = 5;

/** Views, routines, triggers and events whose definer the account is, the first few by name. */
export async function definedBy(session: Session, username: string, host = "%"): Promise<string[]> {
  const definer = `${username}@${host}`;
  const rows = await session.rows<{ what: string }>(
    `SELECT CONCAT('view ', table_schema, '.', table_name) AS what FROM information_schema.views WHERE definer = ?
     UNION ALL SELECT CONCAT(LOWER(routine_type), ' ', routine_schema, '.', routine_name)
       FROM information_schema.routines WHERE definer = ?
     UNION ALL SELECT CONCAT('trigger ', trigger_schema, '.', trigger_name)
       FROM information_schema.triggers WHERE definer = ?
     UNION ALL SELECT CONCAT('event ', event_schema, '.', event_name) FROM information_schema.events WHERE definer = ?
     LIMIT ${namedMax}`,
    [definer, definer, definer, definer],
  );
  return rows.map(({ what }) => what);
}
