import type { BackupFacet } from "./backup-facet.ts";
import type { CollationsFacet, DatabasesFacet, UsersFacet } from "./contents-facets.ts";
import type { IdentityFacet } from "./identity-facet.ts";
import type { MetricsFacet, QueryStatsFacet, ReadOnlyQueryFacet, SessionsFacet } from "./insight-facets.ts";
import type { Instance } from "./instance.ts";
import type { QueuesFacet } from "./queues-facet.ts";
import type { FollowingState, LogicalSlot, ReplicationFacet } from "./replication-facet.ts";
import type { UpgradeFacet } from "./upgrade-facet.ts";

export type { Instance, InstancePaths } from "./instance.ts";

/** Values of database_type that this agent can run. */
export type Engine = "postgresql" | "valkey";

/** One database engine as the agent sees it. Every method is idempotent and cancellable. */
export interface EngineDriver {
  readonly engine: Engine;
  readonly topology: "single_primary" | "self_elected";
  /** One thread answers all clients in turn, so that a long command holds up all others: it is silent then and does not stand still. */
  readonly answersInTurn?: true;
  /** With its writes blocked it takes those that free memory and disk: clients stay on a disk that is full. */
  readonly freesWhenBlocked?: true;
  /** Root of an installed version inside a machine, such as /usr/lib/postgresql/17. */
  software(version: string): string;
  /** What is installed there, and can it run? Never throws: an absent engine is an answer. */
  fingerprint(software: string, signal: AbortSignal): Promise<Fingerprint>;
  /** Pure: the files that these settings ask for. The agent writes them. */
  render(instance: Instance): ConfigFile[];
  /** Pure: where clients find the engine with these files. It is running once it, or a companion, listens at each of them. */
  listeners(instance: Instance): Listener[];
  /** Makes an empty data directory ready for a first start. Nothing happens when it is ready. */
  bootstrap(instance: Instance, signal: AbortSignal): Promise<void>;
  /** The process that the keeper is to run as this engine's component. */
  command(instance: Instance): EngineCommand;
  /** Processes that belong to the engine: started before it is `ready`, stopped before it, restarted when they end. */
  companions?(instance: Instance): readonly Companion[];
  /** Does the machine's image have a pooler of sessions for it? Absent: the engine has none at all. Asked before companions are. */
  offersPooler?(instance: Pick<Instance, "paths">, signal: AbortSignal): Promise<boolean>;
  /**
   * After the process started: resolves when it takes a write, and has the platform's own roles, users and databases. A
   * replica is ready when it answers and replays; one that is to be the primary is promoted by it.
   */
  ready(instance: Instance, signal: AbortSignal): Promise<void>;
  /** How the keeper asks the engine to stop in order, and how long that may take. */
  readonly stop: { readonly signal: NodeJS.Signals; readonly graceMs: number };
  /** Ends commands of users that would hold up a stop in order, as far as that undoes nothing. Bounded in time; never throws. */
  endCommands?(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Gives room back that the engine's own files take and nobody needs, before clients are refused for it. Called several times a second. */
  freeRoom?(instance: Instance, space: RoomOnDisk, signal: AbortSignal): Promise<void>;
  /** Makes a running engine read the files that changed, and holds open sessions to the allow-list. */
  reload(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Fresh from the engine: can it take a write, what does it run with? Bounded in time by the caller's signal. */
  observe(instance: Instance, signal: AbortSignal): Promise<EngineObservation>;
  /** Reads a line that the engine logged; undefined for one that goes on from the line before. */
  parseLog(line: string): ParsedLogLine | undefined;
  /** Why it did not start or ended, by the last lines it printed. */
  explainFailure(output: string): EngineFailure;
  readonly users?: UsersFacet;
  readonly databases?: DatabasesFacet;
  readonly collations?: CollationsFacet;
  readonly queues?: QueuesFacet;
  readonly identity?: IdentityFacet;
  /** Works as the engine's own user, in a component beside the engine. */
  readonly backup?: BackupFacet;
  /** For services of several members. */
  readonly replication?: ReplicationFacet;
  /** Absent for an engine that runs on the data of an older version as they are. */
  readonly upgrade?: UpgradeFacet;
  readonly metrics?: MetricsFacet;
  readonly queryStats?: QueryStatsFacet;
  readonly sessions?: SessionsFacet;
  readonly readOnlyQuery?: ReadOnlyQueryFacet;
}

/** The part of the data disk that clients may fill, in bytes. */
export interface RoomOnDisk {
  readonly totalBytes: number;
  /** Free for any writer at this moment. */
  readonly writableBytes: number;
}

/** An address and a TCP port. */
export interface Listener {
  readonly address: string;
  readonly port: number;
}

/** A second process of an engine, as a component of its own. */
export interface Companion {
  /** Name of its component. */
  readonly name: string;
  readonly command: EngineCommand;
  readonly stop: { readonly signal: NodeJS.Signals; readonly graceMs: number };
  /** The engine is of use without it. */
  readonly isOptional?: true;
  /** Absent: it is. One that is not wanted is stopped where it runs. */
  readonly isWanted?: boolean;
}

export interface EngineFailure {
  /** `configuration` is a parameter's fault: taking back what was changed last helps. */
  readonly cause: "configuration" | "memory" | "disk_full" | "port_busy" | "data_damaged" | "unknown";
  /** The engine's own words, one line. */
  readonly message: string;
  /** The parameter that it names, if it names one. */
  readonly parameter: string | undefined;
}

/** An engine with the driver that speaks to it. */
export interface DrivenInstance {
  readonly driver: EngineDriver;
  readonly instance: Instance;
}

export interface ConfigFile {
  /** Below paths.config. */
  readonly name: string;
  readonly content: string;
  readonly mode: number;
}

export interface EngineCommand {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export type Fingerprint =
  | { readonly present: true; readonly version: string }
  | { readonly present: false; readonly reason: string };

export interface EngineObservation {
  /**
   * Did the engine itself answer, if only by an error? One that is full, crowded, recovering or busy with a script does. An error
   * that says that it cannot go on, such as a failing disk, is none.
   */
  readonly answered: boolean;
  readonly version: string;
  /** Checks by name; liveness is a write, or an answer of a replica. */
  readonly checks: readonly EngineCheck[];
  readonly pendingRestart: readonly string[];
  readonly effectiveParameters: Readonly<Record<string, string>>;
  readonly dataBytes: number;
  /** Of a member of a service with several: what the engine is, and of a replica how it does and what it has received. */
  readonly replication?:
    | { readonly role: "primary"; readonly logicalSlots?: readonly LogicalSlot[] }
    | { readonly role: "replica"; readonly state: FollowingState; readonly received?: string };
  /** Of an engine that keeps all data in memory: what that takes there. */
  readonly memoryDataBytes?: number;
}

export interface EngineCheck {
  readonly name: string;
  readonly status: "healthy" | "degraded" | "unhealthy";
  readonly reason: string;
}

export interface ParsedLogLine {
  readonly time: Date;
  readonly level: LogLevel;
  readonly message: string;
}

export type LogLevel = "debug" | "info" | "warning" | "error";
