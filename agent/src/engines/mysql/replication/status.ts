import type { EngineCheck, EngineObservation, Instance } from "../../engine-driver.ts";
import type { FollowingState, ReplicationPeer, ReplicationStatus } from "../../replication-facet.ts";
import { platform } from "../layout.ts";
import { type Session, withSession } from "../session.ts";

const withinMs = 2_000;

/**
 * Reads the replication state from the engine. A position is the set of transactions that the member has, such as
 * `3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5`; a replica has what it received, applied or not.
 */
export function status(instance: Instance, signal: AbortSignal): Promise<ReplicationStatus> {
  return withSession(instance, signal, readStatus, { withinMs });
}

export async function readStatus(session: Session): Promise<ReplicationStatus> {
  if (!(await isReplica(session))) {
    const [row] = await session.rows<{ position: string }>("SELECT @@GLOBAL.gtid_executed AS position");
    const position = withoutSpace(row?.position);
    const common = { timeline: 0, streaming: false, silentMs: 0, replayAgeSeconds: 0 };
    return { role: "primary", position, replayedPosition: position, ...common, peers: await peersOf(session) };
  }
  const source = await readSource(session);
  const [row] = await session.rows<{ age: string | null }>(
    `SELECT TIMESTAMPDIFF(MICROSECOND, GREATEST(
         (SELECT at FROM ${platform}.heartbeat WHERE id = 1),
         COALESCE((SELECT MAX(LAST_APPLIED_TRANSACTION_ORIGINAL_COMMIT_TIMESTAMP)
           FROM performance_schema.replication_applier_status_by_worker), 0)), UTC_TIMESTAMP(6)) / 1000000 AS age`,
  );
  return {
    role: "replica",
    position: source.position,
    replayedPosition: source.applied,
    received: source.received,
    timeline: 0,
    streaming: source.isConnected,
    silentMs: source.silentMs,
    replayAgeSeconds: Math.max(Number(row?.age ?? 0), 0),
    peers: [],
  };
}

/** A member is a replica until it was promoted: only then it accepts writes of the platform. */
export async function isReplica(session: Session): Promise<boolean> {
  const [row] = await session.rows<{ replica: string }>("SELECT @@GLOBAL.super_read_only AS replica");
  return Number(row?.replica) === 1;
}

/** Source and progress of a replica, as the replica reports them. */
export interface Source {
  /** Address of the source; empty if none was set. */
  readonly host: string;
  readonly port: number;
  /** Own address of its connections; empty for any. */
  readonly bind: string;
  readonly uuid: string;
  readonly isConnected: boolean;
  /** True if its receiver runs, connected or not. */
  readonly receives: boolean;
  readonly applies: boolean;
  /** Number and message of the error that ended its receiver; 0 for none. */
  readonly receiveError: readonly [number: number, message: string];
  readonly applyError: readonly [number: number, message: string];
  /** Sets of transactions that were received or applied, and that were applied. */
  readonly position: string;
  readonly applied: string;
  /** String that changes with each received event, heartbeats included. */
  readonly received: string;
  readonly silentMs: number;
}

interface SourceRow {
  readonly Source_Host: string;
  readonly Source_Port: string;
  readonly Source_Bind: string;
  readonly Source_UUID: string;
  readonly Source_Log_File: string;
  readonly Read_Source_Log_Pos: string;
  readonly Replica_IO_Running: string;
  readonly Replica_SQL_Running: string;
  readonly Last_IO_Errno: string;
  readonly Last_IO_Error: string;
  readonly Last_SQL_Errno: string;
  readonly Last_SQL_Error: string;
  readonly Retrieved_Gtid_Set: string;
}

const none: Partial<SourceRow> = {};

export async function readSource(session: Session): Promise<Source> {
  const [found] = await session.rows<SourceRow>("SHOW REPLICA STATUS");
  const row: Partial<SourceRow> = found ?? none;
  const [sets] = await session.rows<{ applied: string; position: string }>(
    "SELECT @@GLOBAL.gtid_executed AS applied, GTID_SUBTRACT(CONCAT(@@GLOBAL.gtid_executed, ',', ?), '') AS position",
    [withoutSpace(row.Retrieved_Gtid_Set)],
  );
  const [link] = await session.rows<{ beats: string; silent: string | null }>(
    `SELECT COUNT_RECEIVED_HEARTBEATS AS beats, TIMESTAMPDIFF(MICROSECOND, GREATEST(LAST_HEARTBEAT_TIMESTAMP,
       LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP, QUEUEING_TRANSACTION_START_QUEUE_TIMESTAMP), NOW(6)) / 1000 AS silent
     FROM performance_schema.replication_connection_status`,
  );
  return {
    host: row.Source_Host ?? "",
    port: Number(row.Source_Port ?? 0),
    bind: row.Source_Bind ?? "",
    uuid: row.Source_UUID ?? "",
    isConnected: row.Replica_IO_Running === "Yes",
    receives: row.Replica_IO_Running === "Yes" || row.Replica_IO_Running === "Connecting",
    applies: row.Replica_SQL_Running === "Yes",
    receiveError: [Number(row.Last_IO_Errno ?? 0), row.Last_IO_Error ?? ""],
    applyError: [Number(row.Last_SQL_Errno ?? 0), row.Last_SQL_Error ?? ""],
    applied: withoutSpace(sets?.applied),
    position: withoutSpace(sets?.position),
    received: [row.Source_UUID, row.Source_Log_File, row.Read_Source_Log_Pos, link?.beats].join(":"),
    silentMs: Math.max(Math.round(Number(link?.silent ?? 0)), 0),
  };
}

/** The engine prints one source a line. */
function withoutSpace(set: string | undefined): string {
  return (set ?? "").replaceAll(/\s/g, "");
}

/** Members that receive from this one. Their positions are their own to report. */
async function peersOf(session: Session): Promise<ReplicationPeer[]> {
  const rows = await session.rows<{ Server_Id: string }>("SHOW REPLICAS");
  return rows.map((row) => ({
    number: Number(row.Server_Id),
    state: "streaming",
    position: "",
    replayedPosition: "",
    since: undefined,
  }));
}

/** Reads the engine's current role, which may differ from the desired one, and a replica's state. */
export async function observeReplication(session: Session): Promise<{
  readonly reported: NonNullable<EngineObservation["replication"]>;
  readonly checks: readonly EngineCheck[];
}> {
  if (!(await isReplica(session))) return { reported: { role: "primary" }, checks: [] };
  const source = await readSource(session);
  const state = followingState(source);
  return { reported: { role: "replica", state, received: source.received }, checks: [replicationCheck(source)] };
}

/** A replica's state by its own report. */
function followingState({ isConnected, position, applied }: Source): FollowingState {
  if (!isConnected) return "disconnected";
  return position === applied ? "streaming" : "catchup";
}

function replicationCheck({ isConnected, applies, applyError: [number, message] }: Source): EngineCheck {
  const name = "replication";
  if (!applies && number !== 0)
    return { name, status: "unhealthy", reason: `The replica cannot apply a change of its primary: ${message}` };
  if (!isConnected) return { name, status: "unhealthy", reason: "The replica is not connected to its primary." };
  return { name, status: "healthy", reason: "" };
}
