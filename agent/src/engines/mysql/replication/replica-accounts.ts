import type { Instance } from "../../engine-driver.ts";
import { membersOf } from "../../members.ts";
import { killAll } from "../end-sessions.ts";
import { replicaUser, syncUser } from "../layout.ts";
import { createMemberAccounts, dropAccounts, type StoredAccount, storedMemberAccounts } from "../platform-accounts.ts";
import { account, type Session } from "../session.ts";
import { peerPassword } from "./peer-port.ts";

/*
 * Accounts of the members on a primary: one of all replicas, and one of each member as a synchronous replica. The
 * caller serializes changes (`accountChanges`).
 */

/** Creates the account of replicas. They get it with the data, so it exists before the first replica. */
export async function createReplicaUser(instance: Instance, session: Session): Promise<void> {
  const found = (await storedMemberAccounts(session)).filter(({ name }) => name === replicaUser);
  if (found.length === 1 && found.every(({ isOwn, isLocked }) => isOwn && !isLocked)) return;
  await createMemberAccounts(session, [{ name: replicaUser, password: peerPassword(instance), isLocked: false }]);
}

/**
 * Creates an account for each member and unlocks the accounts of the synchronous replicas, which alone may acknowledge
 * commits. The accounts are not replicated. Every member has one, so that no user can create an account of that name,
 * which would be replicated to members that have their own.
 */
export async function admitSyncReplicas(
  instance: Instance,
  session: Session,
  { replace } = { replace: false },
): Promise<void> {
  const stored = await storedMemberAccounts(session);
  const missing = [];
  for (const { number } of membersOf(instance.spec)) {
    const name = syncUser(number);
    const isLocked = instance.spec.replication?.syncNumbers.includes(number) !== true;
    const found = stored.filter((each) => each.name === name);
    if (replace || found.length !== 1 || found.some(({ isOwn }) => !isOwn))
      missing.push({ name, password: peerPassword(instance), isLocked });
    else if (isLocked) await lockSyncUser(session, name);
    else if (found.some((each) => each.isLocked)) await session.rows(`ALTER USER ${account(name)} ACCOUNT UNLOCK`);
  }
  for (const { name } of otherSyncUsers(instance, stored)) await lockSyncUser(session, name);
  await createMemberAccounts(session, missing);
}

async function lockSyncUser(session: Session, name: string): Promise<void> {
  await session.rows(`ALTER USER IF EXISTS ${account(name)} ACCOUNT LOCK`);
  await killAll(session, "user = ?", name);
}

/** Drops accounts of former members on this primary and, by replication, on its replicas. */
export async function dropSyncUsersOfOthers(instance: Instance, session: Session): Promise<void> {
  for (const { name } of otherSyncUsers(instance, await storedMemberAccounts(session)))
    await dropAccounts(session, name);
}

/** Accounts of synchronous replicas whose number no member has. */
function otherSyncUsers(instance: Instance, stored: readonly StoredAccount[]): StoredAccount[] {
  const names = new Set([replicaUser, ...membersOf(instance.spec).map(({ number }) => syncUser(number))]);
  return stored.filter(({ name }) => !names.has(name));
}
