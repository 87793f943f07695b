import type { Instance } from "./instance.ts";

/** How a member of a service with several gets its data from the primary, and takes its place. */
export interface ReplicationFacet {
  /** Do the data of this machine follow a primary, or were they one's? `absent` when there are none. */
  dataOf(instance: Instance): Promise<"follower" | "primary" | "absent">;
  /** Replaces the data by a copy of the primary's that follows it. No engine may run. */
  copy(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Has data that were a primary's follow the primary of now, without what that one lacks. No engine may run. What it leaves
   * when it throws is fit for nothing but a copy.
   */
  rewind(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Keeps what data that were a primary's have and the primary of now has not, before a `rewind`: in `directory`, which is emptied, from
   * its beginning on and `limitBytes` of it at most. Undefined where there is nothing. No engine may run. Absent for an engine that
   * gets all data anew.
   */
  keepDiscarded?(
    instance: Instance,
    place: { readonly directory: string; readonly limitBytes: number },
    signal: AbortSignal,
  ): Promise<DiscardedLog | undefined>;
  /** Lets exactly the members connect and keeps the log that they lack; a replica keeps none for anybody. */
  admit(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Has an engine that is to stop write down what it can before, so that the stop itself is short. Never throws. */
  prepareStop(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Parameters of which an engine needs so much at least to start with these data: a replica as much as its primary had. Absent for
   * an engine without any.
   */
  needs?(instance: Instance, signal: AbortSignal): Promise<Readonly<Record<string, number>>>;
  /** Where the last record of a stopped engine's log begins; undefined when it was not stopped in order. */
  stoppedAt(instance: Instance, signal: AbortSignal): Promise<StoppedAt | undefined>;
  /**
   * Where the engine can tell: resolves true once each of these members, by number, has received what the primary wrote after this was called: none of
   * them had taken its place. Rejects when the signal aborts before that.
   */
  confirm?(instance: Instance, numbers: readonly number[], signal: AbortSignal): Promise<boolean>;
  /** Fresh from the engine. */
  status(instance: Instance, signal: AbortSignal): Promise<ReplicationStatus>;
}

/** Where the log of a primary ended that was stopped in order. */
export interface StoppedAt {
  /** Begin of the last record. */
  readonly position: string;
  /** Whose writes the position counts; absent where there are timelines. */
  readonly history?: string;
}

/** A place in the log that a consumer of changes comes back to. */
export interface LogicalSlot {
  readonly name: string;
  readonly database: string;
  readonly plugin: string;
}

/** Log that nobody else had. */
export interface DiscardedLog {
  readonly from: string;
  readonly to: string;
  readonly bytes: number;
  readonly keptBytes: number;
}

export interface ReplicationStatus {
  readonly role: "primary" | "replica";
  /** End of its log that is written, or received and safe on its disk. */
  readonly position: string;
  readonly replayedPosition: string;
  /** Whose writes the positions count, where there are no timelines: those of another history cannot be compared. */
  readonly history?: string;
  /** Another one after anything came, where the position could be the same again. */
  readonly received?: string;
  /** 0 where there are none. */
  readonly timeline: number;
  /** Is its receiver connected? */
  readonly streaming: boolean;
  /** Of a replica whose receiver is connected: milliseconds since anything came. */
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
  /** Undefined where the engine does not tell. */
  readonly since: Date | undefined;
}

/** How a replica does, as its health check and its node show it. */
export type FollowingState = "copying" | "starting" | "catchup" | "streaming" | "disconnected";
