import { setTimeout as sleep } from "node:timers/promises";
import type { Member } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { effectiveParameters } from "../../effective-parameters.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { otherMembers, roleOf } from "../../members.ts";
import type { ReplicationFacet } from "../../replication-facet.ts";
import { applyAllowLists } from "../../front/front-commands.ts";
import { recordEvents, settleEvents } from "../event-states.ts";
import { peersFrontOf } from "../front.ts";
import { probeSql } from "../probe.ts";
import { accountChanges } from "../platform-accounts.ts";
import { codeOf, literal, numberOf, type Session, withNamedLock, withSession } from "../session.ts";
import { endUserSessions } from "../user-sessions.ts";
import { follow, replicationLock } from "./follow.ts";
import { copy, dataRole, rewind, saveStopPosition, shutdownPosition, stopFollowing } from "./follower-files.ts";
import { openPeerSession, plugins, waitsForReplica } from "./peer-port.ts";
import { admitSyncReplicas, createReplicaUser, dropSyncUsersOfOthers } from "./replica-accounts.ts";
import { isReplica, readSource, status } from "./status.ts";

/**
 * Replication by transaction sets (GTIDs), through the engine's peer port. In any role a member starts without
 * accepting writes and without replication: `follow` makes it a replica, and only `becomePrimary` permits writes. A new
 * member copies the data by the clone plugin. A former primary follows with its data if the new one has all of its
 * transactions; otherwise its data are copied again, since MySQL cannot undo an errant transaction.
 *
 * In the synchronous modes commits wait for a replica without a time limit (`rpl_semi_sync_source_timeout`). MySQL
 * counts any replica that acknowledges, so each synchronous replica signs in by a separate account (`syncUser`), which
 * the primary locks before the replica leaves the synchronous set.
 */
export function createReplication(deps: EngineDeps): ReplicationFacet {
  return {
    dataRole,
    copy: (instance, signal) => copy(deps, instance, signal),
    rewind: (instance, signal) => rewind(deps, instance, signal),
    admit: (instance, signal) => admit(deps, instance, signal),
    prepareStop: (instance, signal) => prepareStop(deps, instance, signal),
    confirm,
    shutdownPosition,
    status,
  };
}

/** Creates the accounts of the other members, and makes a replica follow the current primary. */
async function admit(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  if (roleOf(instance.spec) === "replica") return followOrWait(deps, instance, signal);
  await accountChanges(instance.paths.data, () => admitMembers(instance, signal));
}

async function admitMembers(instance: Instance, signal: AbortSignal): Promise<void> {
  await withSession(
    instance,
    signal,
    async (session) => {
      await requireSettings(session);
      await installPlugins(session);
      await admitPeers(instance, session, signal);
      await admitSyncReplicas(instance, session);
      await waitForReplicas(instance, session);
    },
    { isLocal: true },
  );
  await withSession(instance, signal, async (session) => {
    await createReplicaUser(instance, session);
    await dropSyncUsersOfOthers(instance, session);
  });
}

const followWithinMs = 3_000;

/** Follows the primary. Ignores that the primary does not respond: `observe` tries again. */
async function followOrWait(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  try {
    await follow(deps, instance, AbortSignal.any([signal, AbortSignal.timeout(followWithinMs)]));
  } catch (error) {
    signal.throwIfAborted();
    if ((await dataRole(instance)) !== "follower") throw error;
  }
}

/** Throws if an agent of a release without replication started the engine: its settings are not a member's. */
async function requireSettings(session: Session): Promise<void> {
  const [row] = await session.rows<{ ready: string }>("SELECT @@GLOBAL.skip_replica_start AS ready");
  if (Number(row?.ready) !== 1) throw new Error("The engine has no settings of a member yet. Restart the service.");
}

/** Updates the front of the peer port. An engine that an agent without this front started listens there itself. */
async function admitPeers(instance: Instance, session: Session, signal: AbortSignal): Promise<void> {
  const [row] = await session.rows<{ closed: string }>("SELECT @@GLOBAL.skip_networking AS closed");
  if (Number(row?.closed) !== 1) return;
  try {
    await applyAllowLists(peersFrontOf(instance), signal);
  } catch (error) {
    // The front reads the current list when it starts.
    if (!["ENOENT", "ECONNREFUSED"].includes(codeOf(error))) throw error;
  }
}

/** Installs missing plugins: an agent of a release without replication may have started the engine. */
async function installPlugins(session: Session): Promise<void> {
  const rows = await session.rows<{ name: string }>("SELECT PLUGIN_NAME AS name FROM information_schema.plugins");
  const loaded = new Set(rows.map(({ name }) => name.toLowerCase()));
  for (const [name, library] of Object.entries(plugins))
    if (!loaded.has(name)) await session.rows(`INSTALL PLUGIN ${name} SONAME ${literal(library)}`);
}

/** Makes commits wait for a synchronous replica without a time limit, or for no replica. */
async function waitForReplicas(instance: Instance, session: Session): Promise<void> {
  await session.rows("SET GLOBAL rpl_semi_sync_source_timeout = 4294967295");
  await session.rows("SET GLOBAL rpl_semi_sync_source_wait_no_replica = ON");
  await session.rows(`SET GLOBAL rpl_semi_sync_source_enabled = ${waitsForReplica(instance) ? "ON" : "OFF"}`);
}

/** Time limit for a promoted replica to apply the received log, in seconds. */
const applySeconds = 60;

/**
 * Makes a running engine accept writes; does nothing if it does. Throws while it applies received log. An attempt that
 * was interrupted is completed: the engine is no replica any more, but refuses the writes of users.
 */
export async function becomePrimary(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  if (instance.spec.replication === undefined) return;
  const options = { withinMs: (applySeconds + 30) * 1_000 };
  const promote = async (session: Session) => {
    if (await isReplica(session)) {
      await applyEverything(session);
      await installPlugins(session);
      await waitForReplicas(instance, session);
      await stopFollowing(deps, instance, signal);
      await session.rows("SET GLOBAL super_read_only = OFF");
    } else if (instance.writesBlocked === true || !(await refusesWrites(session))) return;
    // Users still cannot write: only replicas that count now may acknowledge their first commit.
    await session.rows("SET SESSION sql_log_bin = 0");
    await admitSyncReplicas(instance, session, { replace: true });
    await settle(session);
    // One statement: an agent that is killed here leaves no primary without the scheduler, which is off on replicas.
    const scheduler = effectiveParameters(instance).get("event_scheduler") ?? "ON";
    const readOnly = instance.writesBlocked === true ? "ON" : "OFF";
    await session.rows(`SET GLOBAL event_scheduler = ${literal(scheduler)}, GLOBAL read_only = ${readOnly}`);
  };
  // The lock waits for the end of an attempt to follow that began earlier.
  const locked = () => withNamedLock(instance, replicationLock, signal, options, promote);
  await accountChanges(instance.paths.data, locked);
}

async function refusesWrites(session: Session): Promise<boolean> {
  const [row] = await session.rows<{ refused: string }>("SELECT @@GLOBAL.read_only AS refused");
  return Number(row?.refused) === 1;
}

async function applyEverything(session: Session): Promise<void> {
  const before = await readSource(session);
  if (before.host === "") return;
  await session.rows("STOP REPLICA IO_THREAD");
  if (!before.applies) await session.rows("START REPLICA SQL_THREAD");
  const [row] = await session.rows<{ late: string }>("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, ?) AS late", [
    (await readSource(session)).position,
    applySeconds,
  ]);
  if (Number(row?.late) !== 0) throw new Error("The replica is still applying received log.");
  await session.rows("STOP REPLICA");
  await session.rows("RESET REPLICA ALL");
}

/** Time limit for the wait for one event's lock, in seconds. `observe` tries again. */
const eventLockSeconds = 1;

/** Gives received events their states on the former primary, before the scheduler runs them. */
async function settle(session: Session): Promise<void> {
  const [before] = await session.rows<{ seconds: string }>("SELECT @@SESSION.lock_wait_timeout AS seconds");
  await session.rows(`SET SESSION lock_wait_timeout = ${eventLockSeconds}`);
  try {
    await settleEvents(session, { isPromotion: true });
  } catch (error) {
    if (numberOf(error) === 0) throw error;
  } finally {
    await session.rows(`SET SESSION lock_wait_timeout = ${Number(before?.seconds)}`);
  }
}

const pollIntervalMs = 50;

/**
 * Resolves true once each of these members has received something from this primary after the call: a transaction or a
 * heartbeat, which the primary sends twice a second. Rejects if the signal aborts first.
 */
async function confirm(instance: Instance, numbers: readonly number[], signal: AbortSignal): Promise<boolean> {
  const uuid = await withSession(instance, signal, async (session) => {
    const [row] = await session.rows<{ uuid: string }>("SELECT @@GLOBAL.server_uuid AS uuid");
    return (await isReplica(session)) ? undefined : row?.uuid;
  });
  if (uuid === undefined) return false;
  const members = otherMembers(instance).filter(({ number }) => numbers.includes(number));
  if (members.length < numbers.length) return false;
  await Promise.all(members.map((member) => untilReceives(instance, member, uuid, signal)));
  return true;
}

async function untilReceives(instance: Instance, member: Member, uuid: string, signal: AbortSignal): Promise<void> {
  const session = await openPeerSession(instance, member, signal);
  const abort = () => session.close();
  signal.addEventListener("abort", abort, { once: true });
  try {
    const read = async () => {
      const source = await readSource(session);
      return source.isConnected && source.uuid === uuid ? source.received : undefined;
    };
    let before: string | undefined;
    for (;;) {
      const now = await read();
      if (before !== undefined && now !== undefined && now !== before) return;
      before ??= now;
      await sleep(pollIntervalMs, undefined, { signal });
    }
  } finally {
    signal.removeEventListener("abort", abort);
    session.close();
  }
}

/** Time limit for the preparation. An engine that takes longer stops without a position, and no switchover follows. */
const stopWithinMs = 5_000;
const receiveWithinMs = 2_000;

/** Refuses writes, stores the position of the last one, and waits up to a limit until other members received it. */
async function prepareStop(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(stopWithinMs)]);
  try {
    const position = await withSession(instance, bounded, endWrites, { withinMs: stopWithinMs });
    if (position === undefined) return;
    const until = AbortSignal.any([bounded, AbortSignal.timeout(receiveWithinMs)]);
    await Promise.allSettled(otherMembers(instance).map((member) => untilHas(instance, member, position, until)));
    await saveStopPosition(deps, instance, position.beforeLast, bounded);
  } catch {
    // Without a stored position the shutdown does not count as clean.
  }
}

interface LastPosition {
  readonly last: string;
  /** GTID set without the last transaction. */
  readonly beforeLast: string;
}

/** Undefined for a replica. */
async function endWrites(session: Session): Promise<LastPosition | undefined> {
  if (await isReplica(session)) return undefined;
  // The last transaction is one of this primary, which no other member had before.
  await session.rows(probeSql);
  await endUserSessions(session);
  await recordLast(session);
  await session.rows("SET GLOBAL super_read_only = ON");
  const [row] = await session.rows<{ last: string; uuid: string }>(
    "SELECT @@GLOBAL.gtid_executed AS last, @@GLOBAL.server_uuid AS uuid",
  );
  const last = (row?.last ?? "").replaceAll(/\s/g, "");
  const transaction = lastOf(last, row?.uuid ?? "");
  if (transaction === undefined) throw new Error("The engine recorded no transaction of this member.");
  const [rest] = await session.rows<{ position: string }>("SELECT GTID_SUBTRACT(?, ?) AS position", [
    last,
    transaction,
  ]);
  return { last, beforeLast: (rest?.position ?? "").replaceAll(/\s/g, "") };
}

/** Records the events' states. A refusal does not prevent the stop: the states of the last observation remain. */
async function recordLast(session: Session): Promise<void> {
  try {
    await recordEvents(session);
  } catch (error) {
    if (numberOf(error) === 0) throw error;
  }
}

/** The newest transaction of this server in a set, such as `uuid:7` in `uuid:1-3:5-7`. */
function lastOf(set: string, uuid: string): string | undefined {
  const ownSet = set.split(",").find((each) => each.startsWith(`${uuid}:`));
  const number = /(\d+)$/.exec(ownSet ?? "")?.[1];
  return number === undefined ? undefined : `${uuid}:${number}`;
}

async function untilHas(
  instance: Instance,
  member: Member,
  { last }: LastPosition,
  signal: AbortSignal,
): Promise<void> {
  const session = await openPeerSession(instance, member, signal);
  const abort = () => session.close();
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      const { position } = await readSource(session);
      const [row] = await session.rows<{ has: string }>("SELECT GTID_SUBSET(?, ?) AS has", [last, position]);
      if (Number(row?.has) === 1) return;
      await sleep(pollIntervalMs, undefined, { signal });
    }
  } finally {
    signal.removeEventListener("abort", abort);
    session.close();
  }
}
