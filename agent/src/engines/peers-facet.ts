import type { Instance } from "./instance.ts";

/**
 * Membership of an engine that forms its cluster itself and whose members elect their leader. No controller names a
 * leader, so a member starts from its own data and its stored settings. The engine identifies members by the numbers in
 * the settings; no number is used again.
 */
export interface PeersFacet {
  /**
   * Forms a cluster of all members in the settings and prepares this member's data, while the engine is stopped.
   * Restored data are retained; other data are replaced. A repetition after a crash must form the same cluster.
   */
  formCluster(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Replaces the data by the data of a new member of an existing cluster, while the engine is stopped. Possible while
   * another member is lost, which is removed later. A repetition after a crash must not create a second member with
   * this number.
   */
  join(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Called at a running member that joins, until it votes: makes it one that votes if it has the cluster's data. Absent
   * for an engine whose new members vote by themselves.
   */
  admit?(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Drains a member and removes it once nothing depends on it. Called at the leader, repeatedly: a call continues the
   * work of an earlier one. The report has the progress. A member that does not respond is removed if the others have
   * all its data.
   */
  leave(instance: Instance, number: number, signal: AbortSignal): Promise<void>;
  /**
   * Places data on all members and replicates what has too few copies. Called at the leader, repeatedly, while no
   * member joins or leaves: a call continues the work of an earlier one. Absent for an engine that does this by itself.
   */
  balance?(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Reads the current state from the running engine. */
  report(instance: Instance, signal: AbortSignal): Promise<PeersReport>;
}

/** State of the cluster as one member has it. */
export interface PeersReport {
  readonly isLeader: boolean;
  readonly quorum: { readonly voters: number; readonly reachable: number; readonly hasMajority: boolean };
  /** True if the member has all data that it should have. */
  readonly inSync: boolean;
  /** Numbers of the members that vote. */
  readonly members: readonly number[];
  /** Numbers of the members that do not vote yet; none when absent. */
  readonly joining?: readonly number[];
  /** Members each of which may stop now without a loss of the majority or of acknowledged writes. */
  readonly safeToRestart: readonly number[];
  readonly leaving: readonly { readonly number: number; readonly remainingBytes: number }[];
}
