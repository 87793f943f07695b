import type { Engine } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Topology } from "@holdfast/common/engine-catalog/engine-row.ts";
import type { BackupFacet } from "./backup-facet.ts";
import type { CollationsFacet, DatabasesFacet, UsersFacet } from "./contents-facets.ts";
import type { IdentityFacet } from "./identity-facet.ts";
import type { IndicesFacet } from "./indices-facet.ts";
import type {
  MetricsFacet,
  QueryStatsFacet,
  ReadOnlyQueryFacet,
  SessionsFacet,
  UnsupportedFeaturesFacet,
} from "./insight-facets.ts";
import type { Instance, InstancePaths } from "./instance.ts";
import type { PeersFacet } from "./peers-facet.ts";
import type { QueuesFacet } from "./queues-facet.ts";
import type { TopicsFacet } from "./topics-facet.ts";
import type { FollowingState, LogicalSlots, ReplicationFacet } from "./replication-facet.ts";
import type { UpgradeFacet } from "./upgrade-facet.ts";

export type { Instance, InstancePaths } from "./instance.ts";

/**
 * One database engine as the agent sees it. Every method is idempotent and cancellable.
 *
 * The agent renders the configuration (`render`), bootstraps the data directory (`bootstrap`), has the keeper run the
 * process (`command`), and waits until it is `ready`. From then on it reloads changed files (`reload`) and polls the
 * engine (`observe`). All of that is the core, which every engine has. Backups, replication, users and the like are
 * facets: an engine without a facet does not have the feature, so no flag can contradict a method. Each engine
 * implements the driver in a folder with the same file names.
 */
export interface EngineDriver {
  readonly engine: Engine;
  readonly topology: Topology;
  /**
   * True if one thread serves all clients, so that a long command blocks the others: silence then does not mean a hang.
   */
  readonly singleThreaded?: true;
  /**
   * True if the engine accepts deletions while its writes are blocked, so that clients remain connected on a full disk.
   */
  readonly acceptsDeletesWhenBlocked?: true;
  /** Root of an installed version inside a machine, such as `/usr/lib/postgresql/17`. */
  software(version: string): string;
  /** Version that is installed and can run. Never throws: an absent engine is a result. */
  fingerprint(software: string, signal: AbortSignal): Promise<Fingerprint>;
  /** The configuration files for these settings. The agent writes them. */
  render(instance: Instance): ConfigFile[];
  /**
   * Addresses at which clients find the engine with these files. The engine is up once it, or a companion,
   * listens at each.
   */
  listeners(instance: Instance): Listener[];
  /** Creates a data directory that is ready for a first start. Does nothing if there is one. */
  bootstrap(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Command line that the keeper runs as the engine's component. */
  command(instance: Instance): EngineCommand;
  /** Processes that belong to the engine: started before it is `ready`, stopped before it, restarted if they exit. */
  companions?(instance: Instance): readonly Companion[];
  /**
   * True if the machine's image has a connection pooler. Called before `companions`; absent for an engine without one.
   */
  offersPooler?(instance: Pick<Instance, "paths">, signal: AbortSignal): Promise<boolean>;
  /**
   * Called after the process started. Resolves when the engine accepts a write and has the platform's roles, users and
   * databases. A replica is ready when it responds and replays; a replica that is to become the primary is promoted.
   */
  ready(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Signal by which the keeper requests a clean shutdown, and the time that it may take. */
  readonly stop: { readonly signal: NodeJS.Signals; readonly graceMs: number };
  /**
   * Ends users' commands that would delay a clean shutdown, unless that would lose their writes. Bounded in time; never
   * throws.
   */
  endCommands?(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Frees disk space that the engine's own files take needlessly, before writes are blocked for it. Called several
   * times a second.
   */
  reclaimSpace?(instance: Instance, space: WritableSpace, signal: AbortSignal): Promise<void>;
  /** Makes a running engine read its changed files, and ends open sessions that the allow-list forbids. */
  reload(instance: Instance, signal: AbortSignal): Promise<void>;
  /**
   * Reads the state of the engine now: whether it accepts a write, and what it runs with. The signal bounds it in time.
   */
  observe(instance: Instance, signal: AbortSignal): Promise<EngineObservation>;
  /** Parses a line of the engine's log; undefined for a continuation of the line before. */
  parseLog(line: string): ParsedLogLine | undefined;
  readonly slowLog?: SlowLogFacet;
  /** Creates the reader of one start's log, for an engine whose start may take long, such as after a crash. */
  startProgress?(): StartProgress;
  /** Cause of a failed start or an exit, by the last lines that the engine printed. */
  explainFailure(output: string): EngineFailure;
  readonly users?: UsersFacet;
  readonly databases?: DatabasesFacet;
  readonly collations?: CollationsFacet;
  readonly queues?: QueuesFacet;
  readonly topics?: TopicsFacet;
  readonly indices?: IndicesFacet;
  readonly identity?: IdentityFacet;
  /** Backup facet. Its calls run as the engine's user in a separate component. */
  readonly backup?: BackupFacet;
  /** Replication facet of an engine whose services have a primary with replicas. */
  readonly replication?: ReplicationFacet;
  /** Peers facet of an engine whose members elect their leader. */
  readonly peers?: PeersFacet;
  /** Absent for an engine that can run on data of an older version as they are. */
  readonly upgrade?: UpgradeFacet;
  readonly metrics?: MetricsFacet;
  readonly queryStats?: QueryStatsFacet;
  readonly sessions?: SessionsFacet;
  readonly readOnlyQuery?: ReadOnlyQueryFacet;
  readonly unsupportedFeatures?: UnsupportedFeaturesFacet;
}

/** Called with each line that the engine prints while it starts; returns what it does since then, for users. */
export type StartProgress = (line: string) => string | undefined;

/** Log of slow statements, which the engine writes itself. Users determine its text, so no state depends on it. */
export interface SlowLogFacet {
  /** Base path: segments are `<path>.<n>`, of which the driver retains a bounded number. */
  path(instance: { readonly paths: Pick<InstancePaths, "data"> }): string;
  /** Parses the first line of an entry; undefined for the others. */
  parse(line: string): ParsedLogLine | undefined;
}

/** Part of the data disk that clients may fill, in bytes. */
export interface WritableSpace {
  readonly totalBytes: number;
  /** Currently free for any writer. */
  readonly writableBytes: number;
}

/** Address and TCP port. */
export interface Listener {
  readonly address: string;
  readonly port: number;
}

/** A secondary process of an engine, as a separate component. */
export interface Companion {
  /** Name of the component. */
  readonly name: string;
  readonly command: EngineCommand;
  readonly stop: { readonly signal: NodeJS.Signals; readonly graceMs: number };
  /** "front" if it listens on a port below 1024. */
  readonly role?: "front";
  /** True if the engine is usable without it. */
  readonly isOptional?: true;
  /** True, the default, if the companion has to run. A running companion that is disabled is stopped. */
  readonly isEnabled?: boolean;
}

export interface EngineFailure {
  /** `configuration`: a parameter is at fault, and reverting the last change helps. */
  readonly cause: "configuration" | "memory" | "disk_full" | "port_busy" | "data_damaged" | "unknown";
  /** The engine's own message, one line. */
  readonly message: string;
  /** Name of the parameter in the message, if there is one. */
  readonly parameter: string | undefined;
}

/** An instance with the driver of its engine. */
export interface DrivenInstance {
  readonly driver: EngineDriver;
  readonly instance: Instance;
}

export interface ConfigFile {
  /** File name below `paths.config`. */
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
   * True if the engine itself responded, even with an error, as when it is full, at its connection limit, recovering or
   * busy with a script. False for an error after which it cannot continue, such as a failing disk.
   */
  readonly responded: boolean;
  readonly version: string;
  /** Health checks by name. `liveness` is a write, or a response of a replica. */
  readonly checks: readonly EngineCheck[];
  readonly pendingRestart: readonly string[];
  readonly effectiveParameters: Readonly<Record<string, string>>;
  readonly dataBytes: number;
  /** The engine's current role in a service with replicas and, of a replica, its state and received position. */
  readonly replication?:
    | { readonly role: "primary" }
    | { readonly role: "replica"; readonly state: FollowingState; readonly received?: string };
  /** Logical slots of an engine that takes writes; absent for a replica, and for an engine without such slots. */
  readonly logicalSlots?: LogicalSlots;
  /** Memory that the data take, for an engine that has all data in memory. */
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
