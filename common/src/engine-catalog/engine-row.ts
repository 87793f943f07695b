import type { Metric } from "../metrics/metric.ts";
import type { Parameter } from "./parameter.ts";

/**
 * Relation of the members of a service. `primary_replicas`: one primary, which controllers name, and replicas that
 * follow it. `peers`: members that elect their leader themselves.
 */
export type Topology = "primary_replicas" | "peers";

/** A row of the engine catalog: versions, port, parameters and features of one engine. */
export interface EngineRow {
  readonly title: string;
  /** API of its services; absent: databases. */
  readonly family?: "files";
  /** False while this release has the engine's driver and does not offer services of it. */
  readonly isOffered?: false;
  /** Other names of the engine in descriptors. */
  readonly aliases?: readonly string[];
  /** Port for clients in connection strings. */
  readonly port: number;
  /** Port for clients where machines cannot listen on ports below 1024; undefined if `port` is not below. */
  readonly unprivilegedPort?: number;
  /** Undefined for an engine that itself listens at `port`. */
  readonly frontEnd?: EngineFrontEnd;
  /** Newest last. */
  readonly versions: readonly string[];
  readonly defaultVersion: string;
  /** Titles of versions that differ from the engine's title and the version. */
  readonly versionTitles?: Readonly<Record<string, string>>;
  /** Versions that the catalog names although this release cannot run them. */
  readonly missingVersions?: readonly { readonly version: string; readonly reason: string }[];
  readonly topology: Topology;
  readonly parameters: readonly Parameter[];
  /** Parameters that exist but are managed by the platform. */
  readonly managedParameters: readonly RegExp[];
  readonly sizing: EngineSizing;
  /** Parameters whose value is at most the number of the service's nodes. */
  readonly nodeBoundParameters?: readonly string[];
  /** Defaults that follow from the number of the service's nodes, as the engine prints them. */
  nodeDefaults?(nodeCount: number): Readonly<Record<string, string>>;
  /** A sentence about the guarantee that a value gives up with this number of nodes; undefined for other values. */
  parameterWarning?(name: string, value: string, nodeCount: number): string | undefined;
  /** Extensions that the default user may create; empty if the engine has none. */
  readonly extensions: readonly string[];
  /** True if the engine has databases that can be listed and created. */
  readonly hasDatabases: boolean;
  /** Layouts of a service's databases, the default first. With one of multi-db, `hasDatabases` does not apply. */
  readonly layoutModes?: readonly string[];
  /** Collations that a service's texts can have, the default first; absent for an engine whose databases choose. */
  readonly serverCollations?: readonly [string, ...string[]];
  /** True if a database belongs to a user, who has all privileges in it. */
  readonly hasDatabaseOwners?: true;
  /** True if it has topics and consumer groups. */
  readonly hasTopics?: true;
  /** Features that need plugins of operators. */
  readonly features?: readonly EngineFeature[];
  /** True if it has indices of documents. */
  readonly hasIndices?: true;
  /** True if its databases can contain queues. */
  readonly hasQueues: boolean;
  /** True if it records query statistics and lists running queries. */
  readonly hasQueryStatistics: boolean;
  /** True if scripts in its language can be assessed, and its unsupported features are counted. */
  readonly hasAssessment?: true;
  /** True if machines with this engine are created ahead of demand, in the warm pool. */
  readonly hasWarmPool: boolean;
  /** True if data disks are bootstrapped ahead of demand, because a bootstrap takes longer than a machine. */
  readonly hasPreparedDisks: boolean;
  /** True if a newer version runs on the data files of an older one without converting them. */
  readonly upgradesInPlace: boolean;
  /** Metrics of this engine, in addition to the metrics of every engine. */
  readonly metrics?: readonly Metric[];
  /** Undefined for an engine without backups. */
  readonly backups?: EngineBackups;
  /** True if the disk of a deleted service is retained for an undelete, although the engine has no backups. */
  readonly retainsDisk?: true;
  /** Listener without TLS in the private network, disabled by default; undefined for an engine without one. */
  readonly privateListener?: { readonly port: number };
  /** Undefined for an engine without a pooler. */
  readonly pooler?: EnginePooler;
}

/** A feature that an engine has only with plugins that the operator of a host adds. */
export interface EngineFeature {
  readonly name: string;
  readonly description: string;
  /** Names of the plugins. */
  readonly plugins: readonly string[];
}

/** Front end that translates another protocol for an engine. */
export interface EngineFrontEnd {
  /** Name of the front end's listener, at the port of the engine's row. */
  readonly listener: string;
  /** Name of the engine's own listener; undefined if clients cannot connect to the engine directly. */
  readonly engineListener?: string;
  /** Port of the engine itself. */
  readonly enginePort: number;
}

/** Connection pooler of an engine. */
export interface EnginePooler {
  readonly port: number;
  /** Supported pooling modes; the first one is the default. Empty if clients share no sessions. */
  readonly modes: readonly PoolerMode[];
}

export type PoolerMode = "transaction" | "session";

/** Backup features of an engine. */
export interface EngineBackups {
  /** Kind of its base backups. */
  readonly kind: "full" | "snapshot";
  /** `any_second` needs an archived log; otherwise only the times of the backups can be restored. */
  readonly restorePoints: "any_second" | "snapshots";
  /** True if a backup has no one moment, so that it is restored by its id and not by a time. */
  readonly byIdOnly?: true;
  /** True if there are incremental backups. */
  readonly increments: boolean;
  readonly fork: boolean;
}

export interface PlanSize {
  readonly vcpu: number;
  readonly memoryBytes: number;
  readonly storageBytes: number;
}

/** Settings of an engine that follow from a plan. */
export interface EngineSizing {
  /**
   * Parameters that a plan determines, as the engine prints them. It includes every catalog parameter without a
   * default, except those of `nodeDefaults`.
   */
  parameters(plan: PlanSize): Readonly<Record<string, string>>;
  /**
   * Maximum of a parameter in this plan, given all parameters; undefined for one without. Sizes are in bytes. Absent
   * for an engine whose parameters fit in every plan.
   */
  maximumOf?(name: string, values: ReadonlyMap<string, number>, plan: PlanSize): PlanMaximum | undefined;
  /**
   * True if an engine of this plan can replay log that was written under these parameters. Sizes are in bytes. Absent
   * for an engine that replays any log.
   */
  canReplay?(values: ReadonlyMap<string, number>, plan: PlanSize): boolean;
  /** Memory for data, of an engine that has all data in memory. */
  dataMemoryBytes?(plan: PlanSize): number;
}

/** Maximum of a parameter, and the resource of the plan that limits it. */
export interface PlanMaximum {
  readonly value: number;
  readonly of: "memory" | "storage";
}
