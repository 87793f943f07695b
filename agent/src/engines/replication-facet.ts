import type { Instance } from "./instance.ts";

/**
 * Replication between the members of a service: how a replica gets the primary's data, and how it takes over.
 *
 * A new member copies the primary's data (`copy`) and follows it. A former primary first loses the writes that the new
 * primary lacks (`saveDiscarded`, then `rewind`). For a switchover the old primary shuts down cleanly (`prepareStop`,
 * `shutdownPosition`), and a replica that has received everything up to that position is promoted by
 * `EngineDriver.ready`.
 */
export interface ReplicationFacet {
  /** Role that the data on this machine were last used in; `absent` if there are none. */
  dataRole(instance: Instance): Promise<"follower" | "primary" | "absent">;
  /** Replaces the data by a copy of the primary's that follows it. The engine must be stopped. */
  copy(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Makes a former primary's data follow the current primary, without the writes that it lacks. The engine must be
   * stopped. If it throws, the data are usable for nothing but a `copy`. Absent for an engine that always copies
   * instead.
   */
  rewind?(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Saves the log that a former primary has and the current primary lacks, before a `rewind`. Empties `directory` and
   * saves up to `limitBytes`, from the beginning on. Undefined if there is no such log. The engine must be stopped.
   * Absent for an engine that copies all data again.
   */
  saveDiscarded?(
    instance: Instance,
    target: { readonly directory: string; readonly limitBytes: number },
    signal: AbortSignal,
  ): Promise<DiscardedLog | undefined>;
  /** Admits exactly the service's members and, on the primary, retains the log that they lack. */
  admit(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Writes out as much as possible before a stop, so that the stop itself is short. Never throws. */
  prepareStop(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Minimum of parameters that an engine needs to start with these data: a replica needs as much as its primary had.
   * Absent for an engine without such parameters.
   */
  requiredParameters?(instance: Instance, signal: AbortSignal): Promise<Readonly<Record<string, number>>>;
  /** Position of the last record of a stopped engine's log; undefined if it was not shut down cleanly. */
  shutdownPosition(instance: Instance, signal: AbortSignal): Promise<ShutdownPosition | undefined>;
  /**
   * Resolves true once each of these members, by number, has received a record that the primary wrote after the call,
   * which proves that none of them was promoted before. Rejects if the signal aborts first. Absent for an engine that
   * cannot prove this.
   */
  confirm?(instance: Instance, numbers: readonly number[], signal: AbortSignal): Promise<boolean>;
  /** Reads the current state from the engine. */
  status(instance: Instance, signal: AbortSignal): Promise<ReplicationStatus>;
}

/** End of the log of a primary that was shut down cleanly. */
export interface ShutdownPosition {
  /** Start of the last record. */
  readonly position: string;
  /** Replication id that the position counts within; absent where there are timelines. */
  readonly history?: string;
}

/** Log that no other member had. */
export interface DiscardedLog {
  readonly from: string;
  readonly to: string;
  readonly bytes: number;
  readonly savedBytes: number;
}

export interface ReplicationStatus {
  readonly role: "primary" | "replica";
  /** End of its log: written, or of a replica received and flushed. */
  readonly position: string;
  readonly replayedPosition: string;
  /**
   * Replication id that the positions count within, where there are no timelines. Positions of different ids cannot be
   * compared.
   */
  readonly history?: string;
  /** String that changes with each received record, for engines whose position can repeat. */
  readonly received?: string;
  /** Timeline id; 0 for an engine without timelines. */
  readonly timeline: number;
  /** True if its receiver is connected. */
  readonly streaming: boolean;
  /** Milliseconds since a replica's connected receiver got a message; absent without a connection. */
  readonly silentMs?: number;
  /** Seconds since the commit that was replayed last. */
  readonly replayAgeSeconds: number;
  readonly peers: readonly ReplicationPeer[];
}

/** A member that receives the primary's log. */
export interface ReplicationPeer {
  readonly number: number;
  readonly state: string;
  readonly position: string;
  readonly replayedPosition: string;
  /** Start of its session; undefined where the engine does not report it. */
  readonly since: Date | undefined;
}

/** State of a replica, as its health check and its node report it. */
export type FollowingState = "copying" | "starting" | "catchup" | "streaming" | "disconnected";

/** A logical replication slot: the position in the log that a consumer of changes resumes from. */
interface LogicalSlot {
  readonly name: string;
  readonly database: string;
  readonly plugin: string;
}

/** A slot that the engine invalidated: its consumer cannot resume. */
interface LostSlot extends LogicalSlot {
  /** The engine's word for the reason, such as `wal_removed`. */
  readonly lostReason: string;
}

export interface LogicalSlots {
  /** Slots that consumers can use. */
  readonly usable: readonly LogicalSlot[];
  readonly lost: readonly LostSlot[];
}
