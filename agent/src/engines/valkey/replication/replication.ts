import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { writeDurably } from "@holdfast/common/durable-file.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { leaderOf, roleOf } from "../../members.ts";
import type { ReplicationFacet, ShutdownPosition } from "../../replication-facet.ts";
import { endCommands } from "../end-commands.ts";
import { applyAllowedCertificates, applyAuthorities } from "../../front/front-commands.ts";
import { frontOf } from "../front.ts";
import { completeHistory, copy, dataRole, startFollowing, stopFollowing, stopPositionFile } from "./follower-files.ts";
import { peerPort, replicaUser } from "./peer-port.ts";
import { untilReceived } from "./receipts.ts";
import { isAppendFileComplete, peersOf, status } from "./status.ts";
import { parseInfo, type Session, withSession } from "../session.ts";
import { syncUsers } from "../users.ts";
import { readEngineFile } from "../../../os/engine-file.ts";

/** Valkey's own replication, through the peer port. There is no rewind: a former primary copies all data again. */
export function createReplication(deps: EngineDeps): ReplicationFacet {
  return {
    dataRole,
    copy: (instance, signal) => copy(deps, instance, signal),
    rewind: startFollowing,
    admit,
    prepareStop,
    confirm,
    shutdownPosition,
    status,
  };
}

/** Opens the peer port to exactly the service's members, and makes a replica follow the current primary. */
async function admit(instance: Instance, signal: AbortSignal): Promise<void> {
  const front = frontOf(instance);
  await applyAuthorities(front, signal);
  await applyAllowedCertificates(front, signal);
  await withSession(instance, signal, async (session) => {
    await admitReplicas(instance, session);
    if (roleOf(instance.spec) === "replica") await syncUsers(session, instance.spec.users);
    await followLeader(instance, session);
  });
}

/** Creates the user of replicas. Every member creates it, so that a promotion does not depend on it. */
async function admitReplicas({ spec }: Instance, session: Session): Promise<void> {
  const hash = createHash("sha256")
    .update(spec.replication?.secret ?? "")
    .digest("hex");
  const before = (await session.call("ACL", "GETUSER", replicaUser)) as unknown[] | null;
  const passwords = before === null ? [] : (before[before.indexOf("passwords") + 1] as string[]);
  if (passwords.length === 1 && passwords[0] === hash) return;
  const rights = ["-@all", "+psync", "+replconf", "+ping"];
  await session.call("ACL", "SETUSER", replicaUser, "reset", "on", `#${hash}`, ...rights);
  await session.call("ACL", "SAVE");
}

async function followLeader(instance: Instance, session: Session): Promise<void> {
  const leader = leaderOf(instance);
  if (leader === undefined) return;
  const info = parseInfo(String(await session.call("INFO", "replication")));
  const port = String(peerPort(instance));
  if (info.get("master_host") === leader.address && info.get("master_port") === port) return;
  await session.call("REPLICAOF", leader.address, port);
}

/** Makes a running engine accept writes; does nothing if it does. Its append-only file is continued. */
export async function becomePrimary(instance: Instance, session: Session): Promise<void> {
  if (instance.spec.replication === undefined) return;
  const info = parseInfo(String(await session.call("INFO", "replication", "persistence")));
  const follows = info.get("role") === "slave";
  if (follows) {
    await requireFile(instance, info);
    await syncUsers(session, instance.spec.users);
  }
  await stopFollowing(instance);
  if (follows) await session.call("REPLICAOF", "NO", "ONE");
  // Writes may still be paused on a former primary whose switchover was reverted.
  await session.call("CLIENT", "UNPAUSE");
}

/** A write during a rewrite of the append-only file would be in no file that a start reads. */
async function requireFile(instance: Instance, info: ReadonlyMap<string, string>): Promise<void> {
  if (isAppendFileComplete(info) || (await completeHistory(instance)) === info.get("master_replid")) return;
  throw new Error("The append-only file does not contain all data yet.");
}

const pollIntervalMs = 50;
/** WAIT for more replicas than there are, so that the engine queries all of them, with the shortest timeout. */
const waitForAll = ["WAIT", "1000000", "1"] as const;

/**
 * Waits until each of these members has received more than had been written before the call. WAIT makes the engine send
 * GETACK to its replicas in the replication stream, even while writes are refused. Rejects if the signal aborts first.
 */
async function confirm(instance: Instance, numbers: readonly number[], signal: AbortSignal): Promise<boolean> {
  return withSession(instance, signal, async (session) => {
    const read = async () => parseInfo(String(await session.call("INFO", "replication")));
    const before = await read();
    if (before.get("role") !== "master") return false;
    await session.call(...waitForAll);
    while (!haveReceivedMore(await read(), numbers, Number(before.get("master_repl_offset"))))
      await sleep(pollIntervalMs, undefined, { signal });
    return true;
  });
}

/** True if each of these members has received more than up to this position. */
export function haveReceivedMore(
  info: ReadonlyMap<string, string>,
  numbers: readonly number[],
  position: number,
): boolean {
  const peers = peersOf(info).filter((peer) => peer.state === "streaming" && Number(peer.position) > position);
  return numbers.every((number) => peers.some((peer) => peer.number === number));
}

/** An engine that takes longer to respond is stopped without the pause: the switchover does not wait for it. */
const withinMs = 3_000;
/** The pause ends with the engine, or when it becomes the primary again. */
const pauseMs = 86_400_000;

/**
 * Pauses writes, waits until the replicas have received the last one, and stores its position. The front ends before
 * the engine, and with it the connections of the replicas: the engine's shutdown cannot wait for them.
 */
async function prepareStop(instance: Instance, signal: AbortSignal): Promise<void> {
  await endCommands(instance, signal);
  try {
    const end = await pauseWrites(instance, AbortSignal.any([signal, AbortSignal.timeout(withinMs)]));
    // A replica that has not followed since the engine's start has another replication id, so it cannot compare the
    // position.
    if (end === undefined || !(await untilReceived(instance, Number(end.position), signal))) return;
    await writeDurably(stopPositionFile(instance), `${end.position} ${end.history}`);
  } catch {
    // Without a stored position the shutdown does not count as clean.
  }
}

interface LogEnd {
  readonly position: string;
  readonly history: string;
}

/** The end of the log, beyond which nothing is written; undefined for a replica. */
async function pauseWrites(instance: Instance, signal: AbortSignal): Promise<LogEnd | undefined> {
  return withSession(instance, signal, async (session) => {
    await session.call("CLIENT", "PAUSE", String(pauseMs), "WRITE");
    const info = parseInfo(String(await session.call("INFO", "replication")));
    if (info.get("role") !== "master") return undefined;
    return { position: info.get("master_repl_offset") ?? "0", history: info.get("master_replid") ?? "" };
  });
}

/** The stored position is the end of the log, so the last record begins before it. */
async function shutdownPosition(instance: Instance): Promise<ShutdownPosition | undefined> {
  const text = await readEngineFile(stopPositionFile(instance)).catch(() => undefined);
  if (text === undefined) return undefined;
  const [position, history] = text.split(" ");
  return { position: String(Math.max(0, Number(position) - 1)), ...(history !== undefined && { history }) };
}
