import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { type EngineUser, EngineUserStateSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { UsersFacet } from "../contents-facets.ts";
import { EngineRefused } from "../engine-errors.ts";
import { isReserved } from "./layout.ts";
import { type Session, withSession } from "./session.ts";

export const users: UsersFacet = {
  list: (instance, signal) =>
    withSession(instance, signal, async (session) => {
      const names = (await session.call("ACL", "USERS")) as string[];
      const visible = names.filter((name) => !isReserved(name)).sort();
      const states = [];
      for (const username of visible) {
        states.push(create(EngineUserStateSchema, { username, role: await roleOf(session, username) }));
      }
      return states;
    }),

  put: (instance, requested, signal, { expected } = {}) =>
    withSession(instance, signal, async (session) => {
      const before = await stateOf(session, requested.username);
      const user =
        expected === "present" ? { ...requested, role: currentRole(before?.role, requested.username) } : requested;
      const hasVerifier = before?.passwords.includes(user.verifier) === true;
      if (before !== undefined && !hasVerifier && expected === "absent")
        throw new EngineRefused(`The engine has a user ${user.username} already.`, { code: "name_taken" });
      const changed = !hasVerifier || before.role !== user.role;
      if (changed) await putUser(session, user);
      // Save even without a change: an earlier call may have been interrupted before it saved.
      await session.call("ACL", "SAVE");
      return { changed, role: user.role };
    }),

  /** Drops the user and ends its sessions. */
  drop: (instance, username, signal) =>
    withSession(instance, signal, async (session) => {
      if (username === defaultUser) throw new EngineRefused(`The user ${defaultUser} cannot be dropped.`);
      if (isReserved(username)) return { existed: false };
      const dropped = await session.call("ACL", "DELUSER", username);
      await session.call("ACL", "SAVE");
      return { existed: dropped !== 0 };
    }),

  check: (instance, username, verifier, signal) =>
    withSession(instance, signal, async (session) => {
      const state = await stateOf(session, username);
      return { exists: state !== undefined, matches: state?.passwords.includes(verifier) ?? false };
    }),

  /** Commands of closed sessions either ran before this one or never will. */
  settled: (instance, { username, verifier }, signal) =>
    withSession(instance, signal, async (session) => {
      const state = await stateOf(session, username);
      // From here on, changes in memory survive a restart.
      await session.call("ACL", "SAVE");
      return {
        exists: state !== undefined,
        matches: state?.passwords.includes(verifier) ?? false,
        role: state?.role ?? "",
      };
    }),
};

/**
 * Current role of a user whose role must not change. Throws EngineRefused if there is no such user or its role is
 * `custom`.
 */
function currentRole(role: string | undefined, username: string): string {
  if (role === undefined)
    throw new EngineRefused(`The engine has no user ${username}.`, { code: "database_user_not_found" });
  if (role !== "custom") return role;
  const message = `${username} has privileges that differ from its role. Change its password in the engine.`;
  throw new EngineRefused(message, { code: "not_possible" });
}

/** Sets the user's role and password. The new role applies to open sessions too. */
export async function putUser(session: Session, { username, role, verifier }: EngineUser): Promise<void> {
  if (isReserved(username)) throw new EngineRefused(`The name ${username} is reserved for the platform.`);
  if (username === defaultUser && role !== "admin")
    throw new EngineRefused(`The role of ${defaultUser} is always admin.`);
  await session.call("ACL", "SETUSER", username, ...accessOf(role, verifier));
}

/** Makes a follower's users exactly these, since users are not replicated. */
export async function syncUsers(session: Session, desired: readonly EngineUser[]): Promise<void> {
  const names = ((await session.call("ACL", "USERS")) as string[]).filter((name) => !isReserved(name));
  const removed = names.filter((name) => !desired.some(({ username }) => username === name));
  if (removed.length > 0) await session.call("ACL", "DELUSER", ...removed);
  let changed = removed.length > 0;
  for (const user of desired) {
    const state = await stateOf(session, user.username);
    if (state?.role === user.role && state.passwords.join() === user.verifier) continue;
    await putUser(session, user);
    changed = true;
  }
  if (changed) await session.call("ACL", "SAVE");
}

async function stateOf(session: Session, username: string): Promise<{ passwords: string[]; role: string } | undefined> {
  if (isReserved(username)) return undefined;
  const reply = (await session.call("ACL", "GETUSER", username)) as unknown[] | null;
  if (reply === null) return undefined;
  const passwords = reply[reply.indexOf("passwords") + 1] as string[];
  return { passwords: passwords.map((hash) => `#${hash}`), role: await roleOf(session, username) };
}

async function roleOf(session: Session, username: string): Promise<string> {
  for (const { role, command } of roleProbes) {
    if ((await session.call("ACL", "DRYRUN", username, ...command)) === "OK") return role;
  }
  return "custom";
}

/** ACL rules of each role; later rules win. No role has CONFIG, ACL, MODULE, DEBUG, REPLICAOF or SHUTDOWN. */
const rules: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries<readonly string[]>({
    admin: [
      "+@all",
      "-@admin",
      "-@dangerous",
      ...["flushall", "flushdb", "info", "keys", "lastsave", "role", "slowlog", "sort", "sort_ro", "restore"].map(
        (name) => `+${name}`,
      ),
      ...["client|list", "client|kill", "latency|latest", "latency|history", "latency|reset"].map((name) => `+${name}`),
    ],
    readwrite: ["+@all", "-@admin", "-@dangerous", "+info"],
    readonly: [
      "-@all",
      "+@read",
      "+@connection",
      "+@transaction",
      "-@admin",
      "-@dangerous",
      ...["info", "subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ssubscribe", "sunsubscribe"].map(
        (name) => `+${name}`,
      ),
    ],
  }),
);

/**
 * Arguments of ACL SETUSER that give a user exactly this role and password. Throws EngineRefused for an unknown role.
 */
function accessOf(role: string, verifier: string): string[] {
  const granted = rules.get(role);
  if (granted === undefined) throw new EngineRefused(`Unknown role ${role}. Roles: admin, readwrite, readonly.`);
  if (!/^#[0-9a-f]{64}$/.test(verifier)) throw new Error("the verifier is not a SHA-256 hash");
  return ["reset", "on", verifier, "~*", "&*", ...granted];
}

/** Commands for ACL DRYRUN that distinguish roles: a user has the first role whose command it may run. */
const roleProbes: readonly { readonly role: string; readonly command: readonly string[] }[] = [
  { role: "admin", command: ["FLUSHALL"] },
  { role: "readwrite", command: ["SET", "key", "value"] },
  { role: "readonly", command: ["GET", "key"] },
];
