import type { EngineCheck, EngineObservation, Instance } from "../../engine-driver.ts";
import type { FollowingState, ReplicationPeer, ReplicationStatus } from "../../replication-facet.ts";
import { completeHistory, isComplete, markComplete } from "./follower-files.ts";
import { memberNumber } from "./peer-port.ts";
import { parseInfo, type Session, withSession } from "../session.ts";

/**
 * Reads the replication state from the engine. A position is a byte offset of the replication stream, such as `1482`,
 * and counts within a replication id (`history`) that begins with a primary's start; there are no timelines. Throws
 * while the engine loads its data.
 */
export function status(instance: Instance, signal: AbortSignal): Promise<ReplicationStatus> {
  return withSession(instance, signal, async (session) => statusOf(instance, await readInfo(instance, session)));
}

/** State by the engine's INFO and the marker files of a completed copy. */
async function statusOf(instance: Instance, info: ReadonlyMap<string, string>): Promise<ReplicationStatus> {
  const text = (name: string) => info.get(name) ?? "0";
  if (text("loading") !== "0") throw new Error("The engine is loading its data.");
  if (info.get("role") !== "slave") {
    const position = text("master_repl_offset");
    const common = { timeline: 0, streaming: false, replayAgeSeconds: 0, peers: peersOf(info) };
    return { role: "primary", position, replayedPosition: position, history: text("master_replid"), ...common };
  }
  const hasOffset = hasOffsetIn(info);
  return {
    role: "replica",
    position: hasOffset ? text("slave_read_repl_offset") : "0",
    replayedPosition: hasOffset ? text("slave_repl_offset") : "0",
    history: hasOffset ? text("master_replid") : await completeHistory(instance),
    received: receivedOf(info),
    timeline: 0,
    streaming: isFollowing(instance, info),
    silentMs: silentSecondsOf(info) * 1_000,
    replayAgeSeconds: silentSecondsOf(info),
    peers: [],
  };
}

/** Seconds since the primary sent anything. */
export function silentSecondsOf(info: ReadonlyMap<string, string>): number {
  const name =
    info.get("master_link_status") === "up" ? "master_last_io_seconds_ago" : "master_link_down_since_seconds";
  return Math.max(0, Number(info.get(name) ?? 0));
}

/**
 * An offset of 1 or less means that no primary has reported its offset, since the start or during a full copy.
 */
function hasOffsetIn(info: ReadonlyMap<string, string>): boolean {
  return Number(info.get("slave_read_repl_offset") ?? 0) > 1;
}

/**
 * String that changes with each received byte. Offsets restart with each replication id, so it includes that id.
 */
function receivedOf(info: ReadonlyMap<string, string>): string {
  return `${info.get("master_replid")}:${info.get("slave_read_repl_offset")}`;
}

/** Reads the replication fields of INFO, and records a copy that was completed. */
export async function readInfo(instance: Instance, session: Session): Promise<ReadonlyMap<string, string>> {
  const info = parseInfo(String(await session.call("INFO", "replication", "persistence")));
  const isUp = info.get("role") === "slave" && info.get("master_link_status") === "up";
  if (isUp && isAppendFileComplete(info)) await markComplete(instance, info.get("master_replid") ?? "");
  return info;
}

/** True if the append-only file contains all data: the engine rewrites it after a full copy. */
export function isAppendFileComplete(info: ReadonlyMap<string, string>): boolean {
  const isIdle = info.get("aof_rewrite_in_progress") === "0" && info.get("aof_rewrite_scheduled") === "0";
  return info.get("aof_enabled") === "1" && info.get("aof_last_bgrewrite_status") === "ok" && isIdle;
}

function isFollowing(instance: Instance, info: ReadonlyMap<string, string>): boolean {
  return info.get("master_link_status") === "up" && isComplete(instance);
}

/** Reports the engine's current role, which may differ from the desired one, and a replica's state. */
export function observeReplication(
  instance: Instance,
  info: ReadonlyMap<string, string>,
): {
  readonly reported: NonNullable<EngineObservation["replication"]>;
  readonly checks: readonly EngineCheck[];
} {
  if (info.get("role") !== "slave") return { reported: { role: "primary" }, checks: [] };
  const state = followingState(instance, info);
  const check: EngineCheck =
    state === "disconnected"
      ? { name: "replication", status: "unhealthy", reason: "The replica is not connected to its primary." }
      : { name: "replication", status: "healthy", reason: "" };
  return { reported: { role: "replica", state, received: receivedOf(info) }, checks: [check] };
}

function followingState(instance: Instance, info: ReadonlyMap<string, string>): FollowingState {
  if (isFollowing(instance, info)) {
    return info.get("slave_read_repl_offset") === info.get("slave_repl_offset") ? "streaming" : "catchup";
  }
  const isCopying = info.get("master_link_status") === "up" || info.get("master_sync_in_progress") === "1";
  return isCopying ? "starting" : "disconnected";
}

/** Replicas in a reply to INFO, from lines such as `slave0:ip=...,port=6379,state=online,offset=56,lag=0`. */
export function peersOf(info: ReadonlyMap<string, string>): ReplicationPeer[] {
  const lines = [...info].flatMap(([name, value]) => (/^slave\d+$/.test(name) ? [value] : []));
  return lines.flatMap((line) => {
    const fields = new Map(line.split(",").map((field) => field.split("=", 2) as [string, string]));
    const number = memberNumber(fields.get("ip") ?? "");
    const position = fields.get("offset") ?? "";
    const state = fields.get("state") === "online" ? "streaming" : "backup";
    return number === undefined ? [] : [{ number, state, position, replayedPosition: position, since: undefined }];
  });
}
