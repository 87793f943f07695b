import { randomBytes, randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { type EngineUser, EngineUserStateSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { PutUserOptions, UsersFacet } from "../contents-facets.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import {
  type AclBinding,
  aclsOf,
  addAcls,
  keyOfAcl,
  listAcls,
  operation,
  pattern,
  permission,
  principalOfUser,
  removeAcls,
  resource,
  roleOfAcls,
} from "./access.ts";
import { otherMembers } from "../members.ts";
import { isReserved, platform } from "./layout.ts";
import { alterScramCredentials, describeScramCredentials } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { errorCodes, requireSuccess } from "./protocol/protocol-error.ts";
import { acceptsUser, type ScramMechanism, type ScramSecret } from "./protocol/scram-client.ts";
import { withClientSession, withSession } from "./session.ts";
import { untilApplied, untilAppliedEverywhere } from "./until-applied.ts";

const mechanismCodes: Readonly<Record<ScramMechanism, number>> = { "SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2 };

/**
 * Users of Kafka: SCRAM credentials and ACLs, both in the log of the cluster's metadata. A user exists once it has
 * credentials. Nobody else can change either, so the verifier that the platform set last is the one in the engine.
 */
export const users: UsersFacet = {
  list: (instance, signal) =>
    withSession(instance, signal, async (session) => {
      const names = (await userNames(session)).filter((name) => !isReserved(name)).toSorted();
      const byPrincipal = Map.groupBy(await listAcls(session, null), ({ principal }) => principal);
      return names.map((username) => {
        const acls = byPrincipal.get(principalOfUser(username)) ?? [];
        return create(EngineUserStateSchema, { username, role: roleOfAcls(username, acls) });
      });
    }),

  put: (instance, user, signal, { expected } = {}) =>
    withSession(instance, signal, (session) => changeUser(instance, session, user, expected, signal)),

  /** The next request of an open connection is refused; within ten minutes the connection ends. */
  drop: (instance, username, signal) =>
    withSession(instance, signal, async (session) => {
      if (username === defaultUser) throw new EngineRefused(`${defaultUser} cannot be dropped`);
      if (isReserved(username)) return { existed: false };
      const principal = principalOfUser(username);
      await removeAcls(session, await listAcls(session, principal));
      const existed = (await userNames(session)).includes(username);
      // A call changes one credential of a user at most.
      for (const mechanism of Object.values(mechanismCodes)) {
        const deletions = [{ name: username, mechanism }];
        const { results } = await session.call(alterScramCredentials, { deletions, upsertions: [] });
        for (const result of results)
          if (result.errorCode !== errorCodes.resourceNotFound) requireSuccess("AlterUserScramCredentials", result);
      }
      await removeBarrier(session, username);
      const isRemoved = async (at: Connection) =>
        (await listAcls(at, principal)).length === 0 && !(await userNames(at)).includes(username);
      await untilAppliedEverywhere(instance, signal, isRemoved);
      return { existed };
    }),

  check: async (instance, username, verifier, signal) => {
    const { exists, matches } = await stateOf(instance, username, verifier, signal);
    return { exists, matches };
  },

  settled: (instance, { username, verifier }, signal) => stateOf(instance, username, verifier, signal),
};

async function stateOf(instance: Instance, username: string, verifier: string, signal: AbortSignal) {
  return withSession(instance, signal, async (session) => {
    const exists = !isReserved(username) && (await userNames(session)).includes(username);
    if (!exists) return { exists, matches: false, role: "" };
    const matches = verifier !== "" && (await hasVerifier(instance, username, verifier, signal));
    const role = roleOfAcls(username, await listAcls(session, principalOfUser(username)));
    return { exists, matches, role };
  });
}

async function changeUser(
  instance: Instance,
  session: Connection,
  { username, role: requestedRole, verifier }: EngineUser,
  expected: PutUserOptions["expected"],
  signal: AbortSignal,
): Promise<{ changed: boolean; role: string }> {
  if (isReserved(username)) throw new EngineRefused(`The name ${username} is reserved for the platform.`);
  const before = await stateOf(instance, username, verifier, signal);
  if (expected === "present") requirePresent(username, before);
  const role = expected === "present" ? before.role : requestedRole;
  if (before.exists && !before.matches && expected === "absent")
    throw new EngineRefused(`The engine has a user ${username} already.`, { code: "name_taken" });
  if (username === defaultUser && role !== "admin") throw new EngineRefused(`${defaultUser} is always an admin`);
  if (before.matches && before.role === role) return { changed: false, role };
  await putUser(instance, session, { username, role, verifier }, signal);
  // The user's next connection may be to any broker.
  if (otherMembers(instance).length > 0)
    await untilAppliedEverywhere(instance, signal, await writeBarrier(session, username));
  return { changed: true, role };
}

function requirePresent(username: string, { exists, role }: { readonly exists: boolean; readonly role: string }): void {
  if (!exists) throw new EngineRefused(`The engine has no user ${username}.`, { code: "database_user_not_found" });
  if (role !== "custom") return;
  const message = `${username} has custom privileges; change its password in the engine.`;
  throw new EngineRefused(message, { code: "not_possible" });
}

/** Sets the user's role and password, and resolves once this broker applies both. */
export async function putUser(
  instance: Instance,
  session: Connection,
  { username, role, verifier }: Pick<EngineUser, "username" | "role" | "verifier">,
  signal: AbortSignal,
): Promise<void> {
  if (isReserved(username)) throw new EngineRefused(`The name ${username} is reserved for the platform.`);
  const secrets = secretsOf(verifier);
  const desired = aclsOf(username, role);
  await settleAcls(session, await listAcls(session, principalOfUser(username)), desired);
  for (const { mechanism, ...secret } of secrets) {
    const upsertions = [{ name: username, mechanism: mechanismCodes[mechanism], ...secret }];
    const { results } = await session.call(alterScramCredentials, { deletions: [], upsertions });
    for (const result of results) requireSuccess("AlterUserScramCredentials", result);
  }
  await untilApplied(signal, async () => {
    const acls = await listAcls(session, principalOfUser(username));
    return roleOfAcls(username, acls) === role && (await hasVerifier(instance, username, verifier, signal));
  });
}

/** Rights that the user loses go first. */
async function settleAcls(session: Connection, before: readonly AclBinding[], desired: readonly AclBinding[]) {
  const [had, needed] = [before, desired].map((acls) => new Set(acls.map(keyOfAcl)));
  await removeAcls(
    session,
    before.filter((acl) => needed?.has(keyOfAcl(acl)) === false),
  );
  await addAcls(
    session,
    desired.filter((acl) => had?.has(keyOfAcl(acl)) === false),
  );
}

async function userNames(session: Connection): Promise<string[]> {
  return (await credentialsOf(session)).map(({ user }) => user);
}

/** Users that have a password by each mechanism. */
export async function completeUsers(session: Connection): Promise<string[]> {
  const all = Object.keys(mechanismCodes).length;
  return (await credentialsOf(session)).filter(({ credentials }) => credentials.length === all).map(({ user }) => user);
}

async function credentialsOf(session: Connection) {
  const answer = await session.call(describeScramCredentials, { users: null });
  requireSuccess("DescribeUserScramCredentials", answer);
  return answer.results;
}

/**
 * Account that nobody uses and that is never dropped. Kafka 3.9 loses the passwords of all users at a start if it reads
 * the removal of one before another that still exists: an empty map of a mechanism is removed, and entries that follow
 * are put into the removed map. The order is that of a Java HashMap. The hash code of this name is 0, so the account is
 * the first entry, and the map is never empty.
 */
export const firstAccount = `${platform}-first-snrkz8a`;

/** Creates the first account with a random password, before any other user. */
export async function createFirstAccount(session: Connection): Promise<void> {
  if ((await completeUsers(session)).includes(firstAccount)) return;
  for (const mechanism of Object.values(mechanismCodes)) {
    const secret = { iterations: 8_192, salt: randomBytes(24), saltedPassword: randomBytes(64) };
    const upsertions = [{ name: firstAccount, mechanism, ...secret }];
    const { results } = await session.call(alterScramCredentials, { deletions: [], upsertions });
    for (const result of results) requireSuccess("AlterUserScramCredentials", result);
  }
}

/** Kafka reveals the salt of a password only during a sign-in, so this function signs in. */
async function hasVerifier(instance: Instance, username: string, verifier: string, signal: AbortSignal) {
  for (const secret of secretsOf(verifier)) {
    const accepted = await withClientSession(instance, signal, (session) => acceptsUser(session, username, secret));
    if (!accepted) return false;
  }
  return true;
}

/** The salted passwords of a verifier: `SCRAM-SHA-256$8192:SALT$SALTED,SCRAM-SHA-512$8192:SALT$SALTED` in base64. */
function secretsOf(verifier: string): ScramSecret[] {
  return verifier.split(",").map((part) => {
    const match = /^(SCRAM-SHA-(?:256|512))\$(\d{4,5}):([\w+/=]+)\$([\w+/=]+)$/.exec(part);
    if (match === null) throw new Error("the verifier has no salted passwords of SCRAM");
    const [, mechanism, iterations, salt = "", saltedPassword = ""] = match;
    return {
      mechanism: mechanism as ScramMechanism,
      iterations: Number(iterations),
      salt: Buffer.from(salt, "base64"),
      saltedPassword: Buffer.from(saltedPassword, "base64"),
    };
  });
}

/**
 * A barrier is an ACL that grants and denies nothing, with the id of the last change of a user. No call reports which
 * password a broker applies, but brokers apply the metadata in the order of its log, and rights after passwords: a
 * broker that reports a barrier, which is written after the password, applies that password too.
 */
function barrierOf(username: string, id: string): AclBinding {
  return {
    resourceType: resource.topic,
    resourceName: `${platform}-${id}`,
    patternType: pattern.literal,
    principal: barrierPrincipal(username),
    host: "*",
    operation: operation.describe,
    permission: permission.deny,
  };
}

const barrierPrincipal = (username: string): string => principalOfUser(`${platform}-mark-of-${username}`);

/** Writes a new barrier in place of the former one. Returns whether a broker has it. */
async function writeBarrier(session: Connection, username: string): Promise<(at: Connection) => Promise<boolean>> {
  const barrier = barrierOf(username, randomUUID());
  const before = await listAcls(session, barrier.principal);
  await addAcls(session, [barrier]);
  await removeAcls(session, before);
  return async (at) =>
    (await listAcls(at, barrier.principal)).some(({ resourceName }) => resourceName === barrier.resourceName);
}

async function removeBarrier(session: Connection, username: string): Promise<void> {
  await removeAcls(session, await listAcls(session, barrierPrincipal(username)));
}
