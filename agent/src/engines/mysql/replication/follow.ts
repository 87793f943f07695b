import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { leaderOf, ownMember } from "../../members.ts";
import { authorityFile, certificateFile, keyFile, replicaUser, syncUser } from "../layout.ts";
import { literal, type Session, withNamedLock } from "../session.ts";
import { stopFollowing } from "./follower-files.ts";
import { isSyncReplica, openPeerSession, peerPassword, peerPort, relayLogSync } from "./peer-port.ts";
import { isReplica, readSource, type Source } from "./status.ts";

/** Name of the lock of changes of the replication. */
export const replicationLock = "replication";

/**
 * Errors of the receiver after which only a copy of the data helps: the source no longer has the log that the replica
 * needs, or lacks transactions that the replica has.
 */
const needsCopy = /purged|has more GTIDs than/i;
/** ER_REPLICA_RELAY_LOG_READ_FAILURE and its number in the log. */
const damagedRelayLog = [1594, 13_121];

/**
 * Makes a running replica follow the current primary; does nothing if it already does. The primary is checked first: it
 * must accept writes and have every transaction of the replica. If it lacks one, the replica's data are marked as data
 * of a former primary, which causes a new copy. Throws while the primary does not respond.
 */
export async function follow(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const leader = leaderOf(instance);
  if (leader === undefined) return;
  await withNamedLock(instance, replicationLock, signal, { withinMs: 5_000 }, async (session) => {
    if (!(await isReplica(session))) return;
    const before = await readSource(session);
    const isSync = isSyncReplica(instance);
    const isSameSource = before.host === leader.address && before.port === peerPort(instance);
    const isBound = before.bind === instance.spec.address;
    if (isSameSource && isBound && before.receives && before.applies && (await isSyncNow(session)) === isSync) return;
    if (needsCopy.test(before.receiveError[1])) return copyAgain(deps, instance, before.receiveError[1], signal);
    // Received transactions are applied even if the source does not respond.
    if (isSameSource && !before.applies) await applyReceived(session, before);
    // A change of this member's own address discards the received log, so the log is applied first.
    if (isSameSource && !isBound && before.position !== before.applied) return;
    const source = await openPeerSession(instance, leader, signal);
    try {
      const errant = await errantTransactions(session, source, isSameSource);
      if (errant !== "") return copyAgain(deps, instance, `The primary lacks ${errant.slice(0, 200)}.`, signal);
    } finally {
      source.close();
    }
    // An abandoned promotion may have enabled it.
    await session.rows("SET GLOBAL rpl_semi_sync_source_enabled = OFF");
    await session.rows(`SET GLOBAL rpl_semi_sync_replica_enabled = ${isSync ? "ON" : "OFF"}`);
    // An acknowledged transaction is on disk, also if the member started before it became synchronous.
    await session.rows(`SET GLOBAL sync_relay_log = ${relayLogSync(instance)}`);
    if (!isSameSource || !isBound) await session.rows(changeSql(instance, leader.address));
    const user = isSync ? syncUser(ownMember(instance)?.number ?? 0) : replicaUser;
    await session.rows(`START REPLICA USER = ${literal(user)} PASSWORD = ${literal(peerPassword(instance))}`);
  });
}

const withinMs = 3_000;

/** Makes a replica follow its primary, one attempt at a time. A failure shows in the replica's state. */
export function createFollower(deps: EngineDeps) {
  let isFollowing = false;
  return (instance: Instance): void => {
    if (isFollowing) return;
    isFollowing = true;
    follow(deps, instance, AbortSignal.timeout(withinMs))
      .catch(() => undefined)
      .finally(() => {
        isFollowing = false;
      });
  };
}

async function isSyncNow(session: Session): Promise<boolean> {
  const [row] = await session.rows<{ sync: string }>("SELECT @@GLOBAL.rpl_semi_sync_replica_enabled AS sync");
  return Number(row?.sync) === 1;
}

async function copyAgain(deps: EngineDeps, instance: Instance, reason: string, signal: AbortSignal): Promise<never> {
  await stopFollowing(deps, instance, signal);
  throw new Error(`The replica cannot follow its primary and copies its data again. ${reason}`);
}

/**
 * Applies the received log. An incomplete end of the log is discarded: no acknowledged commit is in it, and everything
 * before it has been applied.
 */
async function applyReceived(session: Session, { applyError }: Source): Promise<void> {
  if (damagedRelayLog.includes(applyError[0])) {
    await session.rows("STOP REPLICA");
    await session.rows("RESET REPLICA");
    return;
  }
  await session.rows("START REPLICA SQL_THREAD");
}

/**
 * Stops the replication and returns the errant transactions, as a GTID set: the replica has them and its source can
 * never get them. Empty if there are none. The source's own newest transactions are not errant: the source may not have
 * committed them because it waits for this replica.
 */
async function errantTransactions(session: Session, source: Session, isSameSource: boolean): Promise<string> {
  const [facts] = await source.rows<{ uuid: string; replica: string }>(
    "SELECT @@GLOBAL.server_uuid AS uuid, @@GLOBAL.super_read_only AS replica",
  );
  if (Number(facts?.replica) === 1) throw new Error("The new primary does not accept writes yet.");
  await session.rows("STOP REPLICA");
  const replica = await readSource(session);
  // Log that was received from another source and not applied is discarded, so it does not count.
  const [row] = await source.rows<{ errant: string }>("SELECT GTID_SUBTRACT(?, @@GLOBAL.gtid_executed) AS errant", [
    isSameSource ? replica.position : replica.applied,
  ]);
  const sets = (row?.errant ?? "").replaceAll(/\s/g, "").split(",");
  return sets.filter((set) => set !== "" && !set.startsWith(`${facts?.uuid}:`)).join(", ");
}

/** Statement that sets the source. `follow` checked the source's name; the channel checks its certificate authority. */
function changeSql(instance: Instance, address: string): string {
  const options: Readonly<Record<string, string | number>> = {
    SOURCE_HOST: literal(address),
    SOURCE_PORT: peerPort(instance),
    SOURCE_BIND: literal(instance.spec.address),
    SOURCE_AUTO_POSITION: 1,
    SOURCE_CONNECT_RETRY: 1,
    SOURCE_RETRY_COUNT: 4_294_967_295,
    SOURCE_HEARTBEAT_PERIOD: 0.5,
    SOURCE_SSL: 1,
    SOURCE_SSL_CA: literal(authorityFile(instance)),
    SOURCE_SSL_CERT: literal(certificateFile(instance)),
    SOURCE_SSL_KEY: literal(keyFile(instance)),
  };
  const list = Object.entries(options).map(([name, value]) => `${name} = ${value}`);
  return `CHANGE REPLICATION SOURCE TO ${list.join(", ")}`;
}
