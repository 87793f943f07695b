import type { Instance } from "./instance.ts";

/** Topics and consumer groups of an engine that is a log of records. The platform's own are left out everywhere. */
export interface TopicsFacet {
  /** Without names: all topics by name, without their settings, sizes and partitions. */
  list(instance: Instance, names: readonly string[], signal: AbortSignal): Promise<EngineTopic[]>;
  /** Refused with "name_taken" if the topic exists, unless `mayExist` and it is as requested. */
  create(instance: Instance, topic: NewTopic, signal: AbortSignal): Promise<void>;
  alter(instance: Instance, change: TopicChange, signal: AbortSignal): Promise<void>;
  drop(instance: Instance, name: string, signal: AbortSignal): Promise<{ existed: boolean }>;
  readonly groups: GroupsFacet;
}

export interface GroupsFacet {
  /**
   * Without names: all groups. A summary has no offsets, of which a group can have as many as there are partitions. A
   * summary of all groups has no lag either.
   */
  list(
    instance: Instance,
    request: { readonly names: readonly string[]; readonly summarized: boolean },
    signal: AbortSignal,
  ): Promise<EngineGroup[]>;
  /** Sets the offsets of a topic. Refused while the group has members. */
  reset(instance: Instance, reset: GroupReset, signal: AbortSignal): Promise<void>;
  drop(instance: Instance, name: string, signal: AbortSignal): Promise<{ existed: boolean }>;
}

export interface EngineTopic {
  readonly name: string;
  readonly partitions: number;
  readonly replicationFactor: number;
  readonly sizeBytes: number;
  /** The topic's own settings. */
  readonly config: Readonly<Record<string, string>>;
  readonly partitionStates: readonly EnginePartition[];
}

export interface EnginePartition {
  readonly partition: number;
  /** Number of the member; undefined without a leader. */
  readonly leader: number | undefined;
  readonly replicas: readonly number[];
  readonly inSync: readonly number[];
  readonly startOffset: number;
  readonly endOffset: number;
}

export interface NewTopic {
  readonly name: string;
  /** Undefined for the engine's default. */
  readonly partitions: number | undefined;
  readonly replicationFactor: number | undefined;
  readonly config: Readonly<Record<string, string>>;
  /** Bound of all partitions of the service, its own included. */
  readonly partitionsMax: number;
  /** True if an earlier delivery of the same request, whose outcome is unknown, may have created it. */
  readonly mayExist: boolean;
}

export interface TopicChange {
  readonly name: string;
  /** All partitions afterwards; undefined to leave them. */
  readonly partitions: number | undefined;
  readonly set: Readonly<Record<string, string>>;
  /** Settings that the topic shall not have itself. */
  readonly unset: readonly string[];
  readonly partitionsMax: number;
}

export interface EngineGroup {
  readonly name: string;
  readonly state: string;
  /** Records that the group has not consumed; undefined if it was not read. */
  readonly lag: number | undefined;
  readonly offsets: readonly EngineGroupOffset[];
}

export interface EngineGroupOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly endOffset: number;
}

export interface GroupReset {
  readonly group: string;
  readonly topic: string;
  /** Milliseconds since 1970: the first record of that time or later. */
  readonly to: "earliest" | "latest" | number;
}
