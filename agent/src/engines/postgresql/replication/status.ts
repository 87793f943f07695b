import type { Instance } from "../../engine-driver.ts";
import type { FollowingState, ReplicationPeer, ReplicationStatus } from "../../replication-facet.ts";
import { type Session, withSession } from "../session.ts";
import { memberNumber } from "./members.ts";

const statementMs = 2_000;

/**
 * Reads the replication state. Primary and replica report the same values, so that either can be queried if the other
 * is unreachable. Positions are LSNs, such as `0/3000060`.
 */
export function status(instance: Instance, signal: AbortSignal): Promise<ReplicationStatus> {
  return withSession(instance, signal, readStatus, { statementMs });
}

interface Row {
  readonly recovering: boolean;
  readonly position: string;
  readonly replayed: string;
  readonly timeline: number;
  readonly streaming: boolean;
  readonly silent: number;
  readonly age: number;
}

export async function readStatus(session: Session): Promise<ReplicationStatus> {
  // The receiver does not report log that was received before a restart; replayed log was received too.
  const [row] = await session.rows<Row>(
    `SELECT pg_is_in_recovery() AS recovering,
       CASE WHEN pg_is_in_recovery()
         THEN coalesce(greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()), '0/0')
         ELSE pg_current_wal_lsn() END::text AS position,
       CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0')
         ELSE pg_current_wal_lsn() END::text AS replayed,
       CASE WHEN pg_is_in_recovery()
         THEN coalesce((SELECT received_tli FROM pg_stat_wal_receiver), (SELECT timeline_id FROM pg_control_checkpoint()))
         ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END AS timeline,
       EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming') AS streaming,
       coalesce((SELECT extract(epoch FROM clock_timestamp() - last_msg_receipt_time) FROM pg_stat_wal_receiver), 0)::float8
         AS silent,
       coalesce(greatest(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()), 0), 0)::float8 AS age`,
  );
  if (row === undefined) throw new Error("a SELECT without FROM gave no row");
  const { recovering, position, replayed, timeline, streaming, silent, age } = row;
  const common = { position, replayedPosition: replayed, timeline, replayAgeSeconds: recovering ? age : 0 };
  const silentMs = Math.max(0, Math.round(silent * 1_000));
  if (recovering) return { ...common, role: "replica", streaming, silentMs, peers: [] };
  return { ...common, role: "primary", streaming: false, silentMs: 0, peers: await readPeers(session) };
}

async function readPeers(session: Session): Promise<ReplicationPeer[]> {
  const rows = await session.rows<{
    application_name: string;
    state: string;
    position: string;
    replayed: string;
    backend_start: Date;
  }>(
    `SELECT application_name, state, coalesce(flush_lsn::text, '') AS position, coalesce(replay_lsn::text, '') AS replayed,
       backend_start FROM pg_stat_replication`,
  );
  return rows.flatMap(({ application_name: name, state, position, replayed, backend_start: since }) => {
    const number = memberNumber(name);
    return number === undefined ? [] : [{ number, state, position, replayedPosition: replayed, since }];
  });
}

/** A replica's state by its own report. Replaying received log counts as lagging, not as disconnected. */
export function followingState({ streaming, position, replayedPosition }: ReplicationStatus): FollowingState {
  if (!streaming) return "disconnected";
  return position === replayedPosition ? "streaming" : "catchup";
}
