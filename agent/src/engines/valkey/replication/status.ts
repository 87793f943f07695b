import type { EngineCheck, EngineObservation, Instance } from "../../engine-driver.ts";
import type { FollowingState, ReplicationStatus } from "../../replication-facet.ts";
import { parseInfo } from "../info.ts";
import { type Session, withSession } from "../session.ts";
import { becameComplete, fileHistory, isComplete } from "./follower-files.ts";
import { peersOf } from "./peers.ts";

/**
 * Fresh from the engine. Positions are bytes of the stream of replication, each counted within a history that begins with a
 * primary's start; there are no timelines. Throws while the engine reads its data.
 */
export function status(instance: Instance, signal: AbortSignal): Promise<ReplicationStatus> {
  return withSession(instance, signal, async (session) => statusOf(instance, await readInfo(instance, session)));
}

/** Pure but for the files that say whether a copy has ended. */
async function statusOf(instance: Instance, info: ReadonlyMap<string, string>): Promise<ReplicationStatus> {
  const text = (name: string) => info.get(name) ?? "0";
  if (text("loading") !== "0") throw new Error("The engine reads its data.");
  if (info.get("role") !== "slave") {
    const position = text("master_repl_offset");
    const common = { timeline: 0, streaming: false, replayAgeSeconds: 0, peers: peersOf(info) };
    return { role: "primary", position, replayedPosition: position, history: text("master_replid"), ...common };
  }
  const hasHeard = hasHeardIn(info);
  return {
    role: "replica",
    position: hasHeard ? text("slave_read_repl_offset") : "0",
    replayedPosition: hasHeard ? text("slave_repl_offset") : "0",
    history: hasHeard ? text("master_replid") : await fileHistory(instance),
    received: receivedOf(info),
    timeline: 0,
    streaming: isFollowing(instance, info),
    silentMs: silentSecondsOf(info) * 1_000,
    replayAgeSeconds: silentSecondsOf(info),
    peers: [],
  };
}

/** Pure: seconds since its primary told anything. */
export function silentSecondsOf(info: ReadonlyMap<string, string>): number {
  const name =
    info.get("master_link_status") === "up" ? "master_last_io_seconds_ago" : "master_link_down_since_seconds";
  return Math.max(0, Number(info.get(name) ?? 0));
}

/** Pure: a position of 1 or less says that no primary has told it where it is, since its start or while all data come anew. */
function hasHeardIn(info: ReadonlyMap<string, string>): boolean {
  return Number(info.get("slave_read_repl_offset") ?? 0) > 1;
}

/** Pure: nothing came as long as it is the same. Positions begin anew with each history, so the history is part of it. */
function receivedOf(info: ReadonlyMap<string, string>): string {
  return `${info.get("master_replid")}:${info.get("slave_read_repl_offset")}`;
}

/** Looks at the engine as a member; a copy that has come to its end is remembered. */
export async function readInfo(instance: Instance, session: Session): Promise<ReadonlyMap<string, string>> {
  const info = parseInfo(String(await session.call("INFO", "replication", "persistence")));
  const isUp = info.get("role") === "slave" && info.get("master_link_status") === "up";
  if (isUp && isInFile(info)) await becameComplete(instance, info.get("master_replid") ?? "");
  return info;
}

/** Pure: is all that the engine has in its file, which it writes anew after all data came? */
export function isInFile(info: ReadonlyMap<string, string>): boolean {
  const isQuiet = info.get("aof_rewrite_in_progress") === "0" && info.get("aof_rewrite_scheduled") === "0";
  return info.get("aof_enabled") === "1" && info.get("aof_last_bgrewrite_status") === "ok" && isQuiet;
}

function isFollowing(instance: Instance, info: ReadonlyMap<string, string>): boolean {
  return info.get("master_link_status") === "up" && isComplete(instance);
}

/** What the engine is, whatever it is to be, and how a replica does. */
export function lookAtReplication(
  instance: Instance,
  info: ReadonlyMap<string, string>,
): {
  readonly told: NonNullable<EngineObservation["replication"]>;
  readonly checks: readonly EngineCheck[];
} {
  if (info.get("role") !== "slave") return { told: { role: "primary" }, checks: [] };
  const state = followingState(instance, info);
  const check: EngineCheck =
    state === "disconnected"
      ? { name: "replication", status: "unhealthy", reason: "The replica is not connected to its primary." }
      : { name: "replication", status: "healthy", reason: "" };
  return { told: { role: "replica", state, received: receivedOf(info) }, checks: [check] };
}

function followingState(instance: Instance, info: ReadonlyMap<string, string>): FollowingState {
  if (isFollowing(instance, info)) {
    return info.get("slave_read_repl_offset") === info.get("slave_repl_offset") ? "streaming" : "catchup";
  }
  const isGetting = info.get("master_link_status") === "up" || info.get("master_sync_in_progress") === "1";
  return isGetting ? "starting" : "disconnected";
}
