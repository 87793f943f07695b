import type {
  EngineDatabase,
  EngineUser,
  EngineUserState,
  InstanceSpec,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** Values of database_type that this agent can run. */
export type Engine = "postgresql" | "valkey";

/** One database engine as the agent sees it. Every method is idempotent and cancellable. */
export interface EngineDriver {
  readonly engine: Engine;
  readonly topology: "single_primary" | "self_elected";
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
  /** After the process started: resolves when it takes a write, and has the platform's own roles, users and databases. */
  ready(instance: Instance, signal: AbortSignal): Promise<void>;
  /** How the keeper asks the engine to stop in order, and how long that may take. */
  readonly stop: { readonly signal: NodeJS.Signals; readonly graceMs: number };
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
}

export interface EngineFailure {
  /** `configuration` is a parameter's fault: taking back what was changed last helps. */
  readonly cause: "configuration" | "memory" | "disk_full" | "port_busy" | "data_damaged" | "unknown";
  /** The engine's own words, one line. */
  readonly message: string;
  /** The parameter that it names, if it names one. */
  readonly parameter: string | undefined;
}

/** One engine on this machine: what was asked for and where its files are. */
export interface Instance {
  readonly spec: InstanceSpec;
  readonly paths: InstancePaths;
}

/** An engine with the driver that speaks to it. */
export interface DrivenInstance {
  readonly driver: EngineDriver;
  readonly instance: Instance;
}

export interface InstancePaths {
  /** Root of the data disk; the engine's own directory is below it. */
  readonly data: string;
  /** Rendered files, outside the data disk. */
  readonly config: string;
  /** Server key and certificate: server.key, server.crt, ca.crt. */
  readonly tls: string;
  /** Unix sockets. */
  readonly run: string;
  /** Root of the engine's installed version, such as /usr/lib/postgresql/17. */
  readonly software: string;
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
  readonly version: string;
  /** Checks by name; liveness is a write. */
  readonly checks: readonly EngineCheck[];
  readonly pendingRestart: readonly string[];
  readonly effectiveParameters: Readonly<Record<string, string>>;
  readonly dataBytes: number;
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

/** How far a change of users or databases may go. */
export interface ChangeOptions {
  /** Bound of one statement; past it the engine ends it by itself, and the change throws EngineBusy. 30 s when not given. */
  readonly withinMs?: number;
}

export interface PutUserOptions extends ChangeOptions {
  /**
   * `absent` throws a refusal when there is another user of this name; `present` throws one when there is none, and has the
   * user keep its role. A user that has the verifier already is what an earlier call came to.
   */
  readonly expected?: "absent" | "present" | undefined;
}

/** Users inside the engine. Passwords come as verifiers only. Calls that change one and the same user take turns. */
export interface UsersFacet {
  list(instance: Instance, signal: AbortSignal): Promise<EngineUserState[]>;
  put(
    instance: Instance,
    user: EngineUser,
    signal: AbortSignal,
    options?: PutUserOptions,
  ): Promise<{ changed: boolean; role: string }>;
  drop(
    instance: Instance,
    username: string,
    signal: AbortSignal,
    options?: ChangeOptions,
  ): Promise<{ existed: boolean }>;
  check(
    instance: Instance,
    username: string,
    verifier: string,
    signal: AbortSignal,
  ): Promise<{ exists: boolean; matches: boolean }>;
  /** The user once nothing of earlier changes of it is left in the engine; `verifier` says whether it has this one. */
  settled(
    instance: Instance,
    username: string,
    verifier: string,
    signal: AbortSignal,
    options?: ChangeOptions,
  ): Promise<{ exists: boolean; matches: boolean; role: string }>;
}

export interface DatabasesFacet {
  list(instance: Instance, signal: AbortSignal): Promise<EngineDatabase[]>;
  create(
    instance: Instance,
    database: NewDatabase,
    signal: AbortSignal,
    options?: ChangeOptions,
  ): Promise<{ created: boolean }>;
  drop(instance: Instance, name: string, signal: AbortSignal, options?: ChangeOptions): Promise<{ existed: boolean }>;
  /** The database once nothing of earlier changes of it is left in the engine; `marked` says whether it was made with this mark. */
  settled(
    instance: Instance,
    name: string,
    mark: string,
    signal: AbortSignal,
    options?: ChangeOptions,
  ): Promise<{ exists: boolean; marked: boolean }>;
}

export interface NewDatabase {
  readonly name: string;
  readonly owner: string;
  /** A database that was made with it is created by the same again. Empty: none is known again. */
  readonly mark: string;
}

/** Orders of text that come from a library of the image, where an engine's data depends on one. */
export interface CollationsFacet {
  /** Every one that data of users depends on; those that come with the engine itself are left out. */
  uses(instance: Instance, signal: AbortSignal): Promise<CollationUse[]>;
}

export interface CollationUse {
  readonly database: string;
  readonly collation: string;
  readonly library: "libc" | "ICU";
  /** Version of the library's order when the data was made, and of the one that is here; empty when it is gone. */
  readonly recorded: string;
  readonly actual: string;
}

export type RefusalCode = "engine_refused" | "name_taken" | "database_user_not_found" | "not_possible";

/** The engine said no, in words that a user can read: nothing was changed. */
export class EngineRefused extends Error {
  override readonly name = "EngineRefused";
  readonly code: RefusalCode;

  constructor(message: string, { code = "engine_refused", cause }: { code?: RefusalCode; cause?: unknown } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The engine gave up waiting for what others hold: nothing was changed, and it may work later. */
export class EngineBusy extends Error {
  override readonly name = "EngineBusy";
}
