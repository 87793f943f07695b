import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { type EngineUser, EngineUserStateSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { PutUserOptions, UsersFacet } from "../contents-facets.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import { call, OpensearchRefusal } from "./api.ts";
import { isReserved } from "./layout.ts";
import { engineRole, roleOf } from "./roles.ts";

const usersPath = "/_plugins/_security/api/internalusers";

interface StoredUser {
  readonly backend_roles?: readonly string[];
  readonly attributes?: Readonly<Record<string, string>>;
}

/**
 * Users of the security plugin. The plugin reveals no password hash, so each user has the digest of its verifier beside
 * it; users are `reserved`, so that they cannot change their own accounts, and the digest is the truth.
 */
export const users: UsersFacet = {
  async list(instance, signal) {
    const all = (await call(instance, { method: "GET", path: usersPath }, signal)) as Record<string, StoredUser>;
    return Object.entries(all)
      .filter(([username]) => !isReserved(username))
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([username, user]) => create(EngineUserStateSchema, { username, role: roleOf(user.backend_roles ?? []) }));
  },

  put: (instance, user, signal, { expected } = {}) => changeUser(instance, user, expected, signal),

  /** The user's next request is refused. */
  async drop(instance, username, signal) {
    if (username === defaultUser) throw new EngineRefused(`${defaultUser} cannot be dropped`);
    if (isReserved(username)) return { existed: false };
    try {
      await call(instance, { method: "DELETE", path: pathOf(username) }, signal);
      return { existed: true };
    } catch (error) {
      if (error instanceof OpensearchRefusal && error.status === 404) return { existed: false };
      throw error;
    }
  },

  async check(instance, username, verifier, signal) {
    const { exists, matches } = await stateOf(instance, username, verifier, signal);
    return { exists, matches };
  },

  settled: (instance, { username, verifier }, signal) => stateOf(instance, username, verifier, signal),
};

const pathOf = (username: string): string => `${usersPath}/${encodeURIComponent(username)}`;
const digestOf = (verifier: string): string => hash("sha256", verifier);

async function stateOf(instance: Instance, username: string, verifier: string, signal: AbortSignal) {
  const found = isReserved(username) ? undefined : await find(instance, username, signal);
  if (found === undefined) return { exists: false, matches: false, role: "" };
  const matches = verifier !== "" && found.attributes?.["verifier"] === digestOf(verifier);
  return { exists: true, matches, role: roleOf(found.backend_roles ?? []) };
}

async function find(instance: Instance, username: string, signal: AbortSignal): Promise<StoredUser | undefined> {
  try {
    const answer = await call(instance, { method: "GET", path: pathOf(username) }, signal);
    return lookUp(answer as Record<string, StoredUser>, username);
  } catch (error) {
    if (error instanceof OpensearchRefusal && error.status === 404) return undefined;
    throw error;
  }
}

async function changeUser(
  instance: Instance,
  { username, role: requestedRole, verifier }: EngineUser,
  expected: PutUserOptions["expected"],
  signal: AbortSignal,
): Promise<{ changed: boolean; role: string }> {
  requireUnreserved(username);
  const before = await stateOf(instance, username, verifier, signal);
  if (expected === "present") requirePresent(username, before);
  const role = expected === "present" ? before.role : requestedRole;
  if (before.exists && !before.matches && expected === "absent")
    throw new EngineRefused(`The engine has a user ${username} already.`, { code: "name_taken" });
  if (username === defaultUser && role !== "admin") throw new EngineRefused(`${defaultUser} is always an admin`);
  if (before.matches && before.role === role) return { changed: false, role };
  await putUser(instance, { username, role, verifier }, signal);
  return { changed: true, role };
}

function requireUnreserved(username: string): void {
  if (isReserved(username)) throw new EngineRefused(`The name ${username} is reserved for the platform.`);
}

function requirePresent(username: string, { exists, role }: { readonly exists: boolean; readonly role: string }): void {
  if (!exists) throw new EngineRefused(`The engine has no user ${username}.`, { code: "database_user_not_found" });
  if (role !== "custom") return;
  const message = `${username} has custom privileges; change its password in the engine.`;
  throw new EngineRefused(message, { code: "not_possible" });
}

/** Sets the user's role and password. All members apply both before the engine answers. */
export async function putUser(
  instance: Instance,
  { username, role, verifier }: Pick<EngineUser, "username" | "role" | "verifier">,
  signal: AbortSignal,
): Promise<void> {
  requireUnreserved(username);
  const body = {
    hash: verifier,
    reserved: true,
    backend_roles: [engineRole(role)],
    attributes: { verifier: digestOf(verifier) },
  };
  await call(instance, { method: "PUT", path: pathOf(username), body }, signal);
}
